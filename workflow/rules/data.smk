rule data:
    output:
        manifest="results/{preset}/data/{benchmark}.json",
        questions="results/{preset}/data/{benchmark}.items.jsonl",
    log:
        "results/{preset}/logs/data/{benchmark}.log",
    conda:
        "../../environment.yml"
    params:
        choice=lambda wildcards: as_text(config_hash.of_data(PRESETS[wildcards.preset])),
        code=code("harness/benchmarks", "config/benchmarks.yaml"),
    shell:
        "gmr --log {log} data --preset {wildcards.preset} --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"


# All questions of the preset, for what is done before its first cell.
rule questions:
    input:
        lambda wildcards: data_of(
            config["preset"], PRESETS[config["preset"]].benchmarks
        ),


rule calibration:
    input:
        calibration_inputs,
    output:
        "results/{preset}/calibration.json",
    log:
        "results/{preset}/logs/calibration.log",
    conda:
        "../../environment.yml"
    # All cores there are; asking for workflow.cores would make `snakemake --unlock` insist on --cores.
    threads: 1024
    params:
        changes=lambda wildcards: as_text(dict(PRESETS[wildcards.preset].simulator)),
        published=lambda wildcards: as_text(calibration_targets()),
        code=code(
            "harness/benchmarks",
            "harness/agents/rng.py",
            "harness/llm/backbones.py",
            "harness/llm/encoder.py",
            "harness/runner/calibration.py",
            "harness/sandbox",
            "harness/simulator",
            "config/backbones.yaml",
            "config/encoder.yaml",
            "config/simulator.yaml",
        ),
    shell:
        "gmr --log {log} calibration --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


# One a benchmark: with the questions of all for input, a benchmark more would run it again, and all finished cells.
rule health:
    input:
        health_inputs,
    output:
        "results/{preset}/served/{benchmark}.json",
        # What cells wait for. Its content never changes, so that a check by hand, whose file is newer, makes none again.
        # ancient() would hide from Snakemake, where a killed check is repeated, all that is still to be made after it.
        touch("results/{preset}/served/{benchmark}.checked"),
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    conda:
        "../../environment.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"

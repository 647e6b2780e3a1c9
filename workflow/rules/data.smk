rule data:
    input:
        identity=lambda wildcards: current(
            run_of(wildcards.preset).identity_of_data(wildcards.benchmark)
        ),
    output:
        "results/{preset}/data/{benchmark}.json",
        "results/{preset}/data/{benchmark}.items.jsonl",
    log:
        "results/{preset}/logs/data/{benchmark}.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} data --preset {wildcards.preset} --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"


# Prepares all questions of the preset, for example for `gmr health` before the first cell.
rule questions:
    input:
        lambda _: layout.questions(
            config["preset"], *run_of(config["preset"]).benchmarks
        ),


# One job per benchmark. If one job read the questions of all, a new benchmark would rerun it and all finished cells.
rule health:
    input:
        rules.data.output,
    output:
        "results/{preset}/served/{benchmark}.json",
        # Marker file that cells depend on. A check by hand writes only the other file, so it invalidates no cell.
        touch("results/{preset}/served/{benchmark}.checked"),
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"

rule data:
    input:
        inputs_of("data", "benchmark"),
    output:
        "results/{preset}/data/{benchmark}.json",
        "results/{preset}/data/{benchmark}.items.jsonl",
        "results/{preset}/made_of/data/{benchmark}.sha256",
    log:
        "results/{preset}/logs/data/{benchmark}.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} data --preset {wildcards.preset} --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"


# All questions of the preset, for what is done before its first cell.
rule questions:
    input:
        lambda wildcards: jobs_of(config["preset"]).questions(),


# One a benchmark: with the questions of all for input, a benchmark more would run it again, and all finished cells.
rule health:
    input:
        inputs_of("health", "benchmark"),
    output:
        "results/{preset}/served/{benchmark}.json",
        # What cells wait for. Its content never changes, so that a check by hand, whose file is newer, makes none again.
        # ancient() would hide from Snakemake, where a killed check is repeated, all that is still to be made after it.
        touch("results/{preset}/served/{benchmark}.checked"),
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"

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


# All questions of the preset, for what is done before its first cell.
rule questions:
    input:
        layout.questions(config["preset"], *run_of(config["preset"]).benchmarks),


# Servers must take the longest question. One job a benchmark: with the questions of all for input, a benchmark more
# would run it again, and all finished cells.
rule health:
    input:
        rules.data.output,
    output:
        "results/{preset}/served/{benchmark}.json",
        # What cells wait for: a check by hand writes the other file alone, so that it makes no cell again.
        touch("results/{preset}/served/{benchmark}.checked"),
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"

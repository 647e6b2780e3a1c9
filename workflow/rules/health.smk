# One a benchmark: with the questions of all for input, a benchmark more would run it again, and all finished cells.
rule health:
    input:
        health_inputs,
    output:
        "results/{preset}/served/{benchmark}.json",
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    conda:
        "../../environment.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"
        " --set @results/{wildcards.preset}/config.yaml"

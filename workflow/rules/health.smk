# One a benchmark: with the questions of all for input, a benchmark more would run it again, and all finished cells.
rule health:
    input:
        health_inputs,
    output:
        "results/{preset}/served/{benchmark}.json",
        # What cells wait for. Its content never changes, so that a check by hand, whose file is newer, makes none anew.
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

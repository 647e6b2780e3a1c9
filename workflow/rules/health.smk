# One a benchmark: with the questions of all for input, a benchmark more would run it again, and all finished cells.
rule health:
    input:
        lambda wildcards: data_of(wildcards.preset, [wildcards.benchmark]),
    output:
        "results/{preset}/served/{benchmark}.json",
    log:
        "results/{preset}/logs/served/{benchmark}.log",
    wildcard_constraints:
        preset=one_of(name for name, chosen in PRESETS.items() if not chosen.simulated),
    conda:
        "../../environment.yml"
    shell:
        "gmr --log {log} health --preset {wildcards.preset}"
        " --benchmark {wildcards.benchmark}"

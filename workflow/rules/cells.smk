CELL = "results/{preset}/cells/{method}/{benchmark}/{backbone}/seed{seed}/"


rule cell:
    input:
        identity=lambda wildcards: current(config_of(wildcards).identity),
        made=lambda wildcards: config_of(wildcards).inputs,
        servers=branch(
            lambda wildcards: run_of(wildcards.preset).served,
            then="results/{preset}/served.checked",
        ),
    output:
        [f"{CELL}{name}" for name in layout.cell_files(learned=False)],
    log:
        "results/{preset}/logs/cells/{method}/{benchmark}/{backbone}/seed{seed}.log",
    wildcard_constraints:
        method=one_of(key for key, entry in METHODS.items() if not entry.trained),
    conda:
        "../envs/jobs.yml"
    resources:
        # Profiles limit the number of cells that call real servers concurrently.
        asking=lambda wildcards: int(run_of(wildcards.preset).served),
    shell:
        "gmr --log {log} cell --preset {wildcards.preset} --method {wildcards.method}"
        " --benchmark {wildcards.benchmark} --backbone {wildcards.backbone}"
        " --seed {wildcards.seed}"


use rule cell as learned_cell with:
    output:
        [f"{CELL}{name}" for name in layout.cell_files(learned=True)],
    wildcard_constraints:
        method=one_of(key for key, entry in METHODS.items() if entry.trained),

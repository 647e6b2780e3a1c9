CELL = "results/{preset}/cells/{method}/{benchmark}/{backbone}/seed{seed}/"
ANSWERED = [
    *("run.json", "items.parquet", "calls.parquet", "decisions.parquet"),
    # A replay has no clock.
    *([] if IS_REPLAY else ["timing.json"]),
]
LEARNED = [
    *("training.parquet", "training_calls.parquet", "training_decisions.parquet"),
    "trained.safetensors",
]


rule cell:
    input:
        cell_inputs,
    output:
        [CELL + name for name in ANSWERED],
    log:
        "results/{preset}/logs/cells/{method}/{benchmark}/{backbone}/seed{seed}.log",
    wildcard_constraints:
        method=one_of(key for key, entry in METHODS.items() if not entry.trained),
    conda:
        "../../environment.yml"
    resources:
        # Cells that ask real servers at once; the profiles say how many may.
        asking=lambda wildcards: int(not PRESETS[wildcards.preset].simulated),
    params:
        choice=lambda wildcards: as_text(
            config_hash.of_cell(PRESETS[wildcards.preset], cell_of(wildcards))
        ),
        code=lambda wildcards: code_of_method(wildcards.method),
    shell:
        "gmr --log {log} cell --preset {wildcards.preset} --method {wildcards.method}"
        " --benchmark {wildcards.benchmark} --backbone {wildcards.backbone}"
        " --seed {wildcards.seed}"
        " --set @results/{wildcards.preset}/config.yaml"


use rule cell as learned_cell with:
    output:
        [CELL + name for name in [*ANSWERED, *LEARNED]],
    wildcard_constraints:
        method=one_of(key for key, entry in METHODS.items() if entry.trained),


# What the forecast of a run is reckoned from: every cell behind any artefact, with the seeds of the preset, and nothing
# else.
rule cells:
    input:
        lambda wildcards: [
            layout.cell(config["preset"], cell) / "run.json"
            for cell in registry.cells_of(PRESETS[config["preset"]])
            if cell.seed in PRESETS[config["preset"]].seeds
        ],

LEARNING_DATA = [
    "learning.csv",
    "learning_contrasts.csv",
    *(f"learning_curves.{kind}" for kind in ("csv", "pdf", "svg")),
]
LEARNING = ["learning.md", "learning_curves.png", *LEARNING_DATA]


rule learning:
    input:
        all_runs,
    output:
        in_report("reports/{preset}/learning_curves.png", "learning_curves", "Training"),
        in_report("reports/{preset}/learning.md", "learning", "Training"),
        expand("reports/{{preset}}/{name}", name=LEARNING_DATA),
    log:
        "results/{preset}/logs/learning.log",
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
        cells=lambda wildcards: len(suite.cells(PRESETS[wildcards.preset])),
        code=code_of_report(
            ["analysis.learning.report", "analysis.learning.files"],
            "config/studies",
        ),
    shell:
        "gmr --log {log} learning --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"

LEARNING = [
    "learning.md",
    "learning.csv",
    "learning_contrasts.csv",
    *(f"learning_curves.{kind}" for kind in ("csv", "png", "pdf")),
]


rule learning:
    input:
        all_runs,
    output:
        expand("reports/{{preset}}/{name}", name=LEARNING),
    log:
        "results/{preset}/logs/learning.log",
    conda:
        "../../environment.yml"
    params:
        cells=lambda wildcards: len(suite.cells(PRESETS[wildcards.preset])),
        code=code_of_report(
            ["paper.learning.report", "paper.learning.files"],
            "config/studies",
            "paper/schemas",
        ),
    shell:
        "gmr --log {log} learning --preset {wildcards.preset}"

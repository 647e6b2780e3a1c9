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
        code=code("paper", "config/studies"),
    shell:
        "gmr --log {log} learning --preset {wildcards.preset}"

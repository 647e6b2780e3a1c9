rule search_history:
    input:
        lambda wildcards: [
            folder / "run.json"
            for folder in searches.folders(PRESETS[wildcards.preset])
        ],
    output:
        expand("reports/{{preset}}/{name}", name=SEARCHES),
    log:
        "results/{preset}/logs/search_history.log",
    conda:
        "../../environment.yml"
    params:
        cells=lambda wildcards: len(searches.folders(PRESETS[wildcards.preset])),
        code=code_of_report(["paper.search_history"], "paper/schemas"),
    shell:
        "gmr --log {log} search-history --preset {wildcards.preset}"

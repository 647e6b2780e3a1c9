rule search_history:
    input:
        lambda wildcards: [
            folder / "run.json"
            for folder in searches.folders(PRESETS[wildcards.preset])
        ],
    output:
        in_report("reports/{preset}/search_history.md", "search_history", "Training"),
        "reports/{preset}/search_history.csv",
    log:
        "results/{preset}/logs/search_history.log",
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
        cells=lambda wildcards: len(searches.folders(PRESETS[wildcards.preset])),
        code=code_of_report(["analysis.search_history"]),
    shell:
        "gmr --log {log} search-history --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"

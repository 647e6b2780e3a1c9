# The report people read: the pages and what they load, made whenever anything that they show is.
rule site:
    input:
        lambda wildcards: [
            layout.report(wildcards.preset, name)
            for name in everything(PRESETS[wildcards.preset])
        ],
    output:
        page="reports/{preset}/index.html",
        front="reports/{preset}/site/front.html",
    log:
        "results/{preset}/logs/site.log",
    conda:
        "../../environment.yml"
    params:
        choice=claims_choice,
        code=code(
            "analysis/site",
            *sorted((ROOT / "analysis" / "site" / "assets").iterdir()),
            "analysis/explorer",
            "analysis/trajectories",
            "analysis/training_view",
            "analysis/learning",
            "analysis/search_history.py",
            "analysis/traces.py",
            "analysis/sections.py",
            "docs/deviations.md",
            "config/licences.yaml",
        ),
    shell:
        "gmr --log {log} site --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


localrules:
    front_page,


# The same page for the folder above, where its links lead into the folder of the preset.
rule front_page:
    input:
        page=f"reports/{config['preset']}/site/front.html",
        run="reports/RUN",
    output:
        "reports/index.html",
    log:
        "results/logs/front_page.log",
    conda:
        "../../environment.yml"
    shell:
        "(cp {input.page} {output}; sha256sum {output} >> reports/.copies) 2> {log}"

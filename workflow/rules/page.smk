# The report people read, made whenever anything that it shows is.
rule page:
    input:
        lambda wildcards: [
            layout.report(wildcards.preset, name)
            for name in everything(PRESETS[wildcards.preset])
        ],
    output:
        "reports/{preset}/index.html",
        "reports/{preset}/cells.csv",
    log:
        "results/{preset}/logs/page.log",
    conda:
        "../../environment.yml"
    params:
        choice=claims_choice,
        description=lambda wildcards: PRESETS[wildcards.preset].description,
        code=registry.code_of_report("docs/deviations.md", "config/licences.yaml"),
    shell:
        "gmr --log {log} report page --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


# One job for all cells: loading Inspect takes longer than writing a log. Other files in the folder stay.
rule inspect_logs:
    input:
        all_runs,
    output:
        update(directory("reports/{preset}/inspect")),
    log:
        "results/{preset}/logs/inspect.log",
    conda:
        "../../environment.yml"
    params:
        titles=titles_of_run,
        code=registry.code_of_report(),
    shell:
        "gmr --log {log} export --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


localrules:
    front_page,


# Leads from the folder with the copies to the page of the preset that they are of.
rule front_page:
    input:
        page=f"reports/{config['preset']}/index.html",
        run="reports/RUN",
    output:
        "reports/index.html",
    log:
        "results/logs/front_page.log",
    conda:
        "../../environment.yml"
    params:
        page=f"{config['preset']}/index.html",
    shell:
        '(echo \'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{params.page}</title>'
        '<meta http-equiv="refresh" content="0; url={params.page}">'
        '<p><a href="{params.page}">The report</a></p></html>\' > {output}'
        " && sha256sum {output} >> reports/.copies) 2> {log}"

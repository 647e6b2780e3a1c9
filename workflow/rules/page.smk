# The report people read, made whenever anything that it shows is.
rule page:
    input:
        page_inputs,
    output:
        "reports/{preset}/index.html",
        "reports/{preset}/cells.csv",
        "results/{preset}/made_of/reports/page.sha256",
    log:
        "results/{preset}/logs/page.log",
    conda:
        "../../environment.yml"
    shell:
        "gmr --log {log} report page --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


# One job for all cells of the main table: loading Inspect takes longer than writing a log. Other files in the folder stay.
rule inspect_logs:
    input:
        lambda wildcards: all_runs(wildcards, "inspect", ["inspect"]),
    output:
        update(directory("reports/{preset}/inspect")),
        "results/{preset}/made_of/reports/inspect.sha256",
    log:
        "results/{preset}/logs/inspect.log",
    conda:
        "../../environment.yml"
    shell:
        "gmr --log {log} export --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


localrules:
    front_page,


# Leads from the folder with the copies to the page of the preset that they are of.
rule front_page:
    input:
        f"reports/{config['preset']}/index.html",
        "reports/RUN",
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

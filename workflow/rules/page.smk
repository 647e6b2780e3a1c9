# The report people read, made whenever anything that it shows is.
rule page:
    input:
        inputs_of("page"),
    output:
        "reports/{preset}/index.html",
        "results/{preset}/made_of/reports/page.sha256",
    log:
        "results/{preset}/logs/page.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} report page --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


# One job for all cells of the main table: loading Inspect takes longer than writing a log. Other files in the folder stay.
rule inspect_logs:
    input:
        inputs_of("inspect_logs"),
    output:
        update(directory("reports/{preset}/inspect")),
        "results/{preset}/made_of/reports/inspect.sha256",
    log:
        "results/{preset}/logs/inspect.log",
    conda:
        "../envs/jobs.yml"
    shell:
        "gmr --log {log} export --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"

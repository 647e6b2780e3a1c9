rule main_table:
    input:
        all_runs,
    output:
        expand("reports/{{preset}}/{name}", name=TABLES),
    log:
        "results/{preset}/logs/main_table.log",
    conda:
        "../../environment.yml"
    params:
        cells=lambda wildcards: len(suite.cells(PRESETS[wildcards.preset])),
        code=code("paper"),
    shell:
        "gmr --log {log} main-table --preset {wildcards.preset}"


rule costs:
    input:
        all_runs,
    output:
        expand("reports/{{preset}}/{name}", name=COSTS),
    log:
        "results/{preset}/logs/costs.log",
    conda:
        "../../environment.yml"
    params:
        cells=lambda wildcards: len(suite.cells(PRESETS[wildcards.preset])),
        code=code("paper"),
    shell:
        "gmr --log {log} costs --preset {wildcards.preset}"


rule leak_report:
    input:
        lambda wildcards: data_of(
            wildcards.preset, PRESETS[wildcards.preset].benchmarks
        ),
    output:
        expand("reports/{{preset}}/{name}", name=LEAKS),
    log:
        "results/{preset}/logs/leak_report.log",
    conda:
        "../../environment.yml"
    params:
        code=code("harness/benchmarks"),
    shell:
        "gmr --log {log} leaks --preset {wildcards.preset}"


rule pdf:
    input:
        "reports/{preset}/{name}.tex",
    output:
        "reports/{preset}/{name}.pdf",
    log:
        "results/{preset}/logs/{name}.pdf.log",
    conda:
        "../../environment.yml"
    params:
        code=code("paper/pdf.py"),
    shell:
        "gmr --log {log} pdf {input} {output}"


localrules:
    run_name,
    published_copy,


# Copies of another preset go before RUN names a new one, so that RUN is true of every file beside it.
rule run_name:
    output:
        "reports/RUN",
    log:
        "results/logs/run_name.log",
    conda:
        "../../environment.yml"
    params:
        text=lambda wildcards: f"{config['preset']}: {PRESETS[config['preset']].description}",
    shell:
        "find reports -maxdepth 1 -type f ! -name README.md -delete 2> {log}; echo {params.text:q} > {output} 2>> {log}"


rule published_copy:
    input:
        artefact=lambda wildcards: layout.report(config["preset"], wildcards.name),
        run="reports/RUN",
    output:
        "reports/{name}",
    log:
        "results/logs/copy/{name}.log",
    wildcard_constraints:
        name=r"[^/]+\.(tex|csv|md|html|pdf|png)",
    conda:
        "../../environment.yml"
    shell:
        "cp {input.artefact} {output} 2> {log}"

# Rule link makes reports/NAME, a link to reports/PRESET/NAME. Rules table, figure and report make the artefact with
# `gmr report NAME` from the cells listed in config/artefacts.yaml. Rules cell and learned_cell (cells.smk) make cells.
for kind, endings in registry.ENDINGS.items():

    rule:
        name:
            kind
        input:
            identity=lambda wildcards: current(
                reports.identity(wildcards.name, run_of(wildcards.preset))
            ),
            cells=lambda wildcards: reports.inputs(
                wildcards.name, run_of(wildcards.preset)
            ),
        output:
            expand("reports/{{preset}}/{{name}}.{ending}", ending=endings),
        log:
            "results/{preset}/logs/{name}.log",
        wildcard_constraints:
            name=one_of(key for key, entry in ARTEFACTS.items() if entry.kind == kind),
        conda:
            "../envs/jobs.yml"
        shell:
            "gmr --log {log} report {wildcards.name} --preset {wildcards.preset}"


localrules:
    link,


rule link:
    input:
        target=link_target,
        other=branch(leads_elsewhere, then=NEWER.name),
    output:
        "reports/{name}",
    log:
        "results/logs/link/{name}.log",
    wildcard_constraints:
        name=one_of(reports.all_files()),
    conda:
        "../envs/jobs.yml"
    params:
        target=relative_target,
    shell:
        "ln -s -f {params.target} {output} 2> {log}"

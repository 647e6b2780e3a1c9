rule table:
    input:
        artefact_inputs,
    output:
        in_report("reports/{preset}/{name}.html", "table", section_of),
        expand(
            "reports/{{preset}}/{{name}}.{kind}", kind=other_endings("table", "html")
        ),
        "results/{preset}/made_of/reports/{name}.sha256",
    log:
        "results/{preset}/logs/{name}.log",
    wildcard_constraints:
        name=artefacts_of("table"),
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
    shell:
        "gmr --log {log} report {wildcards.name} --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


use rule table as figure with:
    output:
        in_report("reports/{preset}/{name}.png", "figure", section_of),
        expand(
            "reports/{{preset}}/{{name}}.{kind}", kind=other_endings("figure", "png")
        ),
        "results/{preset}/made_of/reports/{name}.sha256",
    wildcard_constraints:
        name=artefacts_of("figure"),


rule claims:
    input:
        claims_inputs,
    output:
        in_report("reports/{preset}/claims.html", "claims", "The paper's statements"),
        expand("reports/{{preset}}/claims.{kind}", kind=["md", "csv"]),
        "results/{preset}/made_of/reports/claims.sha256",
    log:
        "results/{preset}/logs/claims.log",
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
    shell:
        "gmr --log {log} report claims --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


rule pdf:
    input:
        table="reports/{preset}/{name}.tex",
        page=ROOT / "analysis" / "one_table.tex",
    output:
        "reports/{preset}/{name}.pdf",
    log:
        "results/{preset}/logs/{name}.pdf.log",
    wildcard_constraints:
        name=artefacts_of("table"),
    conda:
        "../../environment.yml"
    shell:
        "(scratch=$(mktemp -d) && cp {input.table} $scratch/fragment.tex && cp {input.page:q} $scratch/table.tex"
        " && (cd $scratch && SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1"
        " pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape table.tex)"
        " && mv $scratch/table.pdf {output} && rm -r $scratch"
        " || {{ echo 'error: {input.table} was not compiled: a PDF needs pdflatex with booktabs, multirow, graphicx and standalone;"
        " on Debian, apt-get install texlive-latex-base texlive-latex-recommended texlive-latex-extra'; exit 1; }}"
        ") > {log} 2>&1"


localrules:
    run_name,
    published_copy,
    front_page,


# Copies of another preset go before RUN names a new one, so that RUN is true of every copy in the folder. What is copied
# is in a list by its checksum, and nothing else is ever taken away in reports/.
rule run_name:
    input:
        when_changed(is_run(preset_named(config["preset"]))),
    output:
        "reports/RUN",
    log:
        "results/logs/run_name.log",
    conda:
        "../../environment.yml"
    params:
        text=name_of_run(preset_named(config["preset"])),
    shell:
        "(touch reports/.copies;"
        " (LC_ALL=C sha256sum --check reports/.copies || true) | sed -n 's/: OK$//p' | xargs -r -d '\\n' rm -f;"
        " rm reports/.copies; echo {params.text:q} > {output}) 2> {log}"


rule published_copy:
    input:
        artefact=lambda wildcards: layout.report(config["preset"], wildcards.name),
        run="reports/RUN",
    output:
        "reports/{name}",
    log:
        "results/logs/copy/{name}.log",
    wildcard_constraints:
        name=rf"(?!index\.html)({one_of(FOLDERS)}/)?[^/]+\.(tex|csv|md|html|pdf|png|svg)",
    conda:
        "../../environment.yml"
    shell:
        "(cp {input.artefact} {output}; sha256sum {output} >> reports/.copies) 2> {log}"

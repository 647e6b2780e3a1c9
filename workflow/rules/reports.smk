rule table:
    input:
        artefact_inputs,
    output:
        in_report("reports/{preset}/{name}.html", "table", section_of),
        expand(
            "reports/{{preset}}/{{name}}.{kind}", kind=other_endings("table", "html")
        ),
    log:
        "results/{preset}/logs/{name}.log",
    wildcard_constraints:
        name=artefacts_of("table"),
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
        choice=artefact_choice,
        code=lambda wildcards: ARTEFACTS[wildcards.name].code(),
    shell:
        "gmr --log {log} report {wildcards.name} --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


use rule table as figure with:
    output:
        in_report("reports/{preset}/{name}.png", "figure", section_of),
        expand(
            "reports/{{preset}}/{{name}}.{kind}", kind=other_endings("figure", "png")
        ),
    wildcard_constraints:
        name=artefacts_of("figure"),


rule claims:
    input:
        claims_inputs,
    output:
        in_report("reports/{preset}/claims.html", "claims", "The paper's statements"),
        expand("reports/{{preset}}/claims.{kind}", kind=["md", "csv"]),
    log:
        "results/{preset}/logs/claims.log",
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
        choice=claims_choice,
        code=registry.code_of_report("config/published.yaml"),
    shell:
        "gmr --log {log} report claims --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


rule learning:
    input:
        all_runs,
    output:
        in_report("reports/{preset}/learning_curves.png", "learning_curves", "Training"),
        in_report("reports/{preset}/learning.html", "learning", "Training"),
        in_report("reports/{preset}/learning_contrasts.html", "learning", "Training"),
        [
            f"reports/{{preset}}/{name}"
            for name in LEARNING
            if not name.endswith((".png", ".html"))
        ],
    log:
        "results/{preset}/logs/learning.log",
    conda:
        "../../environment.yml"
    params:
        backbones=backbones_of,
        titles=titles_of_run,
        code=registry.code_of_report("config/studies"),
    shell:
        "gmr --log {log} report learning --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml"


rule pdf:
    input:
        "reports/{preset}/{name}.tex",
    output:
        "reports/{preset}/{name}.pdf",
    log:
        "results/{preset}/logs/{name}.pdf.log",
    wildcard_constraints:
        name=artefacts_of("table"),
    conda:
        "../../environment.yml"
    params:
        code=code("analysis/one_table.tex"),
        page=ROOT / "analysis" / "one_table.tex",
    shell:
        "(scratch=$(mktemp -d) && cp {input} $scratch/fragment.tex && cp {params.page:q} $scratch/table.tex"
        " && (cd $scratch && SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1"
        " pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape table.tex)"
        " && mv $scratch/table.pdf {output} && rm -r $scratch"
        " || {{ echo 'error: {input} was not compiled: a PDF needs pdflatex with booktabs, multirow, graphicx and standalone;"
        " on Debian, apt-get install texlive-latex-base texlive-latex-recommended texlive-latex-extra'; exit 1; }}"
        ") > {log} 2>&1"


localrules:
    run_name,
    published_copy,
    front_page,


# Copies of another preset go before RUN names a new one, so that RUN is true of every copy in the folder. What is copied
# is in a list by its checksum, and nothing else is ever taken away in reports/.
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

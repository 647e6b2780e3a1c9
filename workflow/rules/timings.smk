rule timing:
    input:
        timing_inputs,
    output:
        "results/{preset}/timings/{method}/{benchmark}/{backbone}/seed{seed}/timing.json",
    log:
        "results/{preset}/logs/timings/{method}/{benchmark}/{backbone}/seed{seed}.log",
    conda:
        "../../environment.yml"
    # All cores there are, so that nothing else runs while a method is timed.
    threads: 1024
    params:
        choice=lambda wildcards: as_text(
            {
                "in_flight": PRESETS[wildcards.preset].in_flight,
                "endpoints": PRESETS[wildcards.preset].endpoints,
            }
        ),
        code=lambda wildcards: code_of_method(wildcards.method),
    shell:
        "gmr --log {log} time --preset {wildcards.preset} --method {wildcards.method}"
        " --benchmark {wildcards.benchmark} --backbone {wildcards.backbone}"
        " --seed {wildcards.seed}"
        " --set @results/{wildcards.preset}/config.yaml"

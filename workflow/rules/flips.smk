rule flip_rate:
    input:
        flips_inputs,
    output:
        expand("reports/{{preset}}/flip_rate.{kind}", kind=["md", "csv"]),
    log:
        "results/{preset}/logs/flip_rate.log",
    conda:
        "../../environment.yml"
    # All cores there are, so that nothing else asks the servers meanwhile.
    threads: 1024
    shell:
        "gmr --log {log} flips --preset {wildcards.preset}"
        " --set @results/{wildcards.preset}/config.yaml > /dev/null"

"""``python -m gmr``, which names the command that is meant."""

raise SystemExit("error: gmr is a method's package; type `gmr` for the commands, or `python -m cli.main`")

"""Refuse ``python -m gmr``, since the commands are in ``cli``."""

raise SystemExit("error: gmr is a method's package; type `gmr` for the commands, or `python -m cli.main`")

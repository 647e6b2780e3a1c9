"""The application ``gmr`` and what its commands share."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import files
from harness.errors import UserError
from harness.files import ROOT, writing
from harness.runner import config, layout
from harness.runner.config import Preset

app = typer.Typer(
    help="Reproducibility suite for Gated-Memory Routing. `snakemake --cores all reports/NAME` makes tables and "
    "figures; these commands are its jobs, or read, check and share what it has made.",
    epilog="docs/runs.md says more of each command, and what exit statuses mean.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
)

# The panel of --help for commands that Snakemake gives.
JOB = "Jobs of the DAG"

PresetName = Annotated[str, typer.Option("--preset", help="A file of config/presets, without .yaml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=YAML",
        help="Override a key of the preset, such as 'limit={test: 32}', or all that a file has: "
        "@results/PRESET/config.yaml.",
    ),
]
BenchmarkKey = Annotated[str, typer.Option("--benchmark", help="A key of config/benchmarks.yaml.")]
MethodKey = Annotated[str, typer.Option("--method", help="A key of config/methods.yaml.")]
BackboneRow = Annotated[str, typer.Option("--backbone", help="A key of config/backbones.yaml, or pool.")]
Seed = Annotated[int, typer.Option("--seed", help="Training seed.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.callback()
def common(
    log: Annotated[Path | None, typer.Option(help="Write progress and errors to this file too.")] = None,
) -> None:
    """Set up what all commands share."""
    if not any(Path(name).exists() for name in ("Snakefile", layout.RESULTS)):
        raise UserError(f"no Snakefile and no results here; give the command in {ROOT}")
    if log is not None:
        with writing(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            logging.getLogger().addHandler(logging.FileHandler(log, mode="w"))


def preset_of(name: str, overrides: list[str] | None) -> Preset:
    """The preset of a command, with the overrides given with it.

    Raises:
        UserError: An unknown preset or key, or an override that is neither KEY=YAML nor @FILE.
    """
    return config.preset(name, overrides_of(overrides))


def overrides_of(overrides: list[str] | None) -> dict[str, Any]:
    """The overrides given with a command; of several of a key the last counts.

    Raises:
        UserError: One is neither KEY=YAML nor @FILE.
    """
    found: dict[str, Any] = {}
    for text in overrides or ():
        found |= _override(text)
    return found


def _override(text: str) -> dict[str, Any]:
    if text.startswith("@"):
        given = files.read_yaml(Path(text[1:]))
        if not isinstance(given, dict):
            raise UserError(f"{text[1:]} holds no keys of a preset; name the config.yaml of a run")
        return given
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text!r} is neither KEY=YAML, such as --set 'limit={{test: 32}}', nor @FILE")
    return {key: files.yaml_value(value)}

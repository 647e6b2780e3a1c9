"""The application ``gmr`` and what its commands share."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import config, layout, yaml_files
from harness.config import Preset
from harness.errors import UserError
from harness.files import ROOT, writing
from workflow.jobs import inherited_overrides
from workflow.manual import EPILOG, Manual

app = typer.Typer(
    cls=Manual,
    help="Reproducibility suite for Gated-Memory Routing. `gmr run` makes tables and figures, as does "
    "`snakemake --cores all reports/NAME`; the other commands read what a run has left, check, share, or are its jobs.",
    epilog=EPILOG,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
)

PresetName = Annotated[str, typer.Option("--preset", help="A file of config/presets, without .yaml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=YAML", help="Override a key of the preset: --set 'limit={test: 32}'."),
]
BenchmarkKey = Annotated[str, typer.Option("--benchmark", help="A key of config/benchmarks.yaml.")]
MethodKey = Annotated[str, typer.Option("--method", help="A key of config/methods.yaml.")]
BackboneRow = Annotated[str, typer.Option("--backbone", help="A key of config/backbones.yaml, or pool.")]
Seed = Annotated[int, typer.Option("--seed", help="Training seed.")]
Targets = Annotated[
    list[str] | None,
    typer.Argument(help="Names of artefacts, files as Snakemake has them, or all; main_table without."),
]
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
    """The preset of a command, with the overrides given with it or inherited from Snakemake.

    Raises:
        UserError: An unknown preset or key, or an override that is not KEY=YAML.
    """
    return config.preset(name, overrides_of(overrides))


def overrides_of(overrides: list[str] | None) -> dict[str, Any]:
    """The overrides given with a command, else those inherited from Snakemake.

    Raises:
        UserError: One is not KEY=YAML.
    """
    return dict(_override(text) for text in overrides) if overrides else inherited_overrides()


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text!r} is not KEY=YAML, such as --set 'limit={{test: 32}}'")
    return key, yaml_files.from_text(value)

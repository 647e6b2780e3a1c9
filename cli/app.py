"""Typer application ``gmr``, and options that its commands share. Imports heavy modules only when a command runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from harness.errors import UserError, check_names

if TYPE_CHECKING:
    from harness.runner.run import Run


def default_preset() -> str:
    from harness.files import read_yaml
    from harness.runner import layout

    return str(read_yaml(layout.run_config())["preset"])


PresetName = Annotated[
    str,
    typer.Option(
        "--preset",
        help="A file of config/presets, without .yaml.",
        default_factory=default_preset,
        show_default="the preset in config/config.yaml",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=YAML", help="Override a key of the preset, such as 'limit={test: 32}'."),
]
BenchmarkKey = Annotated[str, typer.Option("--benchmark", help="A key of config/benchmarks.yaml.")]
MethodKey = Annotated[str, typer.Option("--method", help="A key of config/methods.yaml.")]


def _version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"gmr {metadata.version('gmr-suite')}")
        raise typer.Exit


def _list(is_given: bool) -> None:
    if not is_given:
        return
    from analysis import registry
    from harness.benchmarks import catalogue
    from harness.llm import backbones
    from harness.runner import config, preset

    artefacts, models = registry.artefacts().items(), backbones.load(config.FOLDER / "backbones.yaml")
    lists: dict[str, dict[str, str]] = {
        "presets": {name: preset.resolve(name).description for name in config.preset_names()},
        "methods": {key: entry.title for key, entry in config.methods().items()},
        "benchmarks": {key: catalogue.entry(key).title for key in sorted(catalogue.keys())},
        "backbones": {key: backbone.model for key, backbone in models.items()},
        "artefacts, in reports/PRESET/": {key: ", ".join(registry.ENDINGS[entry.kind]) for key, entry in artefacts},
    }
    width = max(len(key) for entries in lists.values() for key in entries) + 2
    for name, entries in lists.items():
        typer.echo(f"{name}:\n" + "\n".join(f"  {key:<{width}}{text}" for key, text in entries.items()))
    raise typer.Exit


def common(
    ctx: typer.Context,
    log: Annotated[Path | None, typer.Option(help="Write progress and errors to this file too.")] = None,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,
    listing: Annotated[
        bool,
        typer.Option(
            "--list", callback=_list, is_eager=True, help="Presets, methods, benchmarks, backbones, artefacts."
        ),
    ] = False,
) -> None:
    """Reproducibility suite for Gated-Memory Routing.

    `snakemake --cores all reports/NAME` makes tables and figures. These commands are its jobs, or read, check and share
    its results.
    """
    from harness.files import ROOT, writing

    is_anywhere = ctx.invoked_subcommand == "forecast"
    if not is_anywhere and not any(Path(name).exists() for name in ("Snakefile", "results")):
        raise UserError(f"no Snakefile and no results here; run the command in {ROOT}")
    if log is not None:
        with writing(log):
            logging.getLogger().addHandler(logging.FileHandler(log, mode="w"))


class _Commands(TyperGroup):
    """Commands of ``gmr``. For an unknown command, the error names the nearest one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        where = "`gmr -h` lists them; `snakemake --cores all --config preset=NAME` makes a run"
        visible = [name for name, command in self.commands.items() if not command.hidden]
        check_names("command", [name for name in args[:1] if name not in self.commands], visible, where)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    epilog="docs/runs.md explains the commands and their exit statuses.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    callback=common,
)


def last_run(name: str, overrides: Sequence[str] | None = None) -> Run:
    """Resolve the preset of a job or a command on results: the settings of its last run, if any, and overrides."""
    from harness import files
    from harness.runner import layout

    path = layout.settings(name)
    return run_of(name, overrides, files.read_yaml(path) if path.exists() else {})


def run_of(name: str, overrides: Sequence[str] | None, settings: Mapping[str, Any] | None = None) -> Run:
    """Resolve the preset of a command with its overrides, after ``settings``. The last override of a key counts.

    Raises:
        UserError: if an override is not KEY=YAML, or the preset does not accept it.
    """
    from harness import files
    from harness.runner.preset import resolve

    changes = dict(settings or {})
    for text in overrides or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set {text!r} is not KEY=YAML, such as --set 'limit={{test: 32}}'")
        changes[key] = files.yaml_value(value)
    return resolve(name, changes)

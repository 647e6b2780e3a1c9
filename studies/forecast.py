"""Forecast of a run: calls and tokens a question of a finished slice, times the questions of the run.

    python -m studies.forecast [ARTEFACT ...] [--preset paper] [--from rehearsal] [--gpu GPU] [--set KEY=YAML]

Test questions cost what the measured ones cost on average, and so do training questions over all passes, of which the
slice makes as many as the run. Calls about no question, such as the proposals of AFlow's search, stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from annotated_types import Len
from pydantic import PositiveFloat

from analysis import registry
from harness import files
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Many
from harness.llm.backbones import load
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset
from workflow.app import Overrides, preset_of

THROUGHPUT = ROOT / "config" / "throughput.yaml"
_USED, _ASKED = ["used", "used_prompt", "used_completion"], ["asked", "prompt", "completion"]


class Rates(Declaration):
    """Tokens a second of one GPU, least and most: ``prefill`` of those read, ``decode`` of those written."""

    prefill: Annotated[Many[PositiveFloat], Len(2, 2)]
    decode: Annotated[Many[PositiveFloat], Len(2, 2)]


def forecast(preset: Preset, cells: Sequence[Cell], source: Preset) -> tuple[pd.DataFrame, list[Cell]]:
    """Return calls, tokens and cost of a run by method and backbone, and the cells like which none was measured."""
    runs = sorted((layout.RESULTS / source.name / "cells").glob("*/*/*/seed*/run.json"))
    measured = [cell for cell in map(layout.cell_of, (run.parent for run in runs)) if cell is not None]
    pairs = [(cell, most_like(cell, measured)) for cell in cells]
    parts = [_scaled(preset, cell, source, like).assign(method=cell.method) for cell, like in pairs if like]
    if not parts:
        raise UserError(
            f"preset {source.name} has finished no cell like these; measure a slice first: snakemake --cores all cells "
            f"--config preset={source.name} limit='{{share: 0.05}}' seeds='[0]'"
        )
    return pd.concat(parts).groupby(["method", "backbone"], sort=False).sum(), [one for one, like in pairs if not like]


def most_like(cell: Cell, measured: Sequence[Cell]) -> Cell | None:
    """Return the cell itself, else its like of another seed, backbone, benchmark or variant, in this order, or None."""

    def kind(one: Cell) -> tuple[str, bool]:
        return config.methods()[one.method].module, one.backbone == POOL

    alike = [one for one in measured if one.method in config.methods() and kind(one) == kind(cell)]
    names = ("method", "benchmark", "backbone", "seed")
    return min(alike, key=lambda one: [getattr(one, name) != getattr(cell, name) for name in names], default=None)


def hours(amounts: pd.DataFrame, gpu: str | None, path: Path = THROUGHPUT) -> tuple[str, pd.DataFrame]:
    """Return the GPU, by default the first of the table, and its ``least`` and ``most`` hours by backbone."""
    table: dict[str, dict[str, Rates]] = files.read(path, dict[str, dict[str, Rates]])
    gpu = gpu or next(iter(table))
    if gpu not in table:
        raise unknown("GPU", gpu, table, str(path))
    tokens = amounts.groupby(level="backbone", sort=False)[["prompt", "completion"]].sum()
    if strange := [backbone for backbone in tokens.index if backbone not in table[gpu]]:
        raise unknown("backbone", strange[0], table[gpu], f"{path}, below {gpu}")
    found = {}
    for place, name in ((1, "least"), (0, "most")):
        rates = [(table[gpu][one].prefill[place], table[gpu][one].decode[place]) for one in tokens.index]
        found[name] = (tokens / pd.DataFrame(rates, tokens.index, tokens.columns)).sum(axis=1) / 3600
    return gpu, pd.DataFrame(found)


def main(
    artefacts: Annotated[
        list[str] | None,
        typer.Argument(help="Names of artefacts; else all, or all cells of the methods that --set has."),
    ] = None,
    preset: Annotated[str, typer.Option("--preset", help="The run to be forecast.")] = "paper",
    source: Annotated[str, typer.Option("--from", help="The preset whose finished cells are measured.")] = "rehearsal",
    gpu: Annotated[str | None, typer.Option(help="A GPU of config/throughput.yaml; else its first.")] = None,
    overrides: Overrides = None,
) -> None:
    """Say how many calls, tokens and GPU-hours a run takes, and what it costs, from a slice that was measured."""
    chosen, other = preset_of(preset, overrides), config.preset(source)
    made = map(registry.artefact, artefacts) if artefacts else registry.artefacts().values()
    cells = list(dict.fromkeys(cell for one in made for cell in one.cells_of(chosen)))
    if not artefacts and chosen.methods != config.preset(preset).methods:
        cells = [cell for cell in cells if cell.method in chosen.methods]
    found, unlike = forecast(chosen, cells, other)
    typer.echo(f"{len(cells) - len(unlike)} cells of preset {preset}, from {source}{' (SIMULATED)' * other.simulated}.")
    if unlike:
        typer.echo(f"{len(unlike)} cells are like none of it: {', '.join(sorted({one.method for one in unlike}))}.")
    for level in ("method", "backbone"):
        table = found.groupby(level=level, sort=False).sum()[["used", *_ASKED, "cost"]]
        table.loc["all"] = table.sum()
        typer.echo(table.to_string(float_format=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}"))
    if not chosen.simulated:
        device, each = hours(found, gpu)
        each.loc["all"] = each.sum()
        said = ", ".join(f"{key} {low:.2g} to {high:.2g}" for key, low, high in each.itertuples())
        typer.echo(f"Hours of one {device}, kept full, by the assumptions of config/throughput.yaml: {said}.")


def _scaled(preset: Preset, cell: Cell, source: Preset, like: Cell) -> pd.DataFrame:
    backbones = load(ROOT / "config" / "backbones.yaml")
    prepared = layout.manifest(preset.name, cell.benchmark).exists() or preset.data != source.data
    questions = _questions(preset if prepared else source, cell.benchmark)
    splits = {"train": (questions.train, preset.limit.train), "test": (questions.test, preset.limit.test)}
    wanted = {phase: preset.limit.count(len(items), most) for phase, (items, most) in splits.items()}
    rows = _rows(layout.cell(source.name, like), {item.id for item in _questions(source, like.benchmark).train})
    had = rows.groupby("phase")["item_id"].nunique()
    factors = {"neither": 1.0, **{phase: wanted[phase] / had[phase] for phase in wanted if phase in had}}
    total = rows[[*_USED, *_ASKED]].mul(rows["phase"].map(factors), axis=0).groupby(rows["backbone"]).sum()
    if cell.backbone != like.backbone:
        total = total.groupby(lambda _: cell.backbone).sum().rename_axis("backbone")
    spent = [backbones[key].cost(row["used_prompt"], row["used_completion"]) for key, row in total.iterrows()]
    return total.assign(cost=spent).reset_index()


def _rows(folder: Path, trained_on: set[str]) -> pd.DataFrame:
    columns = ["item_id", "backbone", "key", "prompt_tokens", "completion_tokens"]
    tables = [folder / name for name in ("training_calls.parquet", "calls.parquet") if (folder / name).exists()]
    uses = pd.concat(
        [pd.read_parquet(path, columns=columns).assign(table=path.stem) for path in tables], ignore_index=True
    )
    phases = uses["item_id"].isin(trained_on).map({True: "train", False: "neither"})
    uses = uses.assign(phase=phases.where(uses["table"] != "calls", "test"), used=1)
    uses = uses.rename(columns={"prompt_tokens": "used_prompt", "completion_tokens": "used_completion"})
    return uses.assign(**{a: uses[u] * ~uses["key"].duplicated() for a, u in zip(_ASKED, _USED, strict=True)})


def _questions(preset: Preset, benchmark: str) -> Prepared:
    return read(layout.manifest(preset.name, benchmark), layout.items(preset.name, benchmark))


if __name__ == "__main__":
    from workflow.cli import run

    run(lambda: typer.run(main))

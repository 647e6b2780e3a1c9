"""Forecast of a run: calls and tokens a question of a finished slice, times the questions of the run.

Test questions cost what the measured ones cost on average, and so do training questions over all passes that were
measured and that the run makes. Calls about no question, such as the proposals of AFlow's search, stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import orjson
import pandas as pd
from annotated_types import Len
from pydantic import PositiveFloat

from cli.speed import Speed
from harness import files
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Many
from harness.llm import endpoints
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset

THROUGHPUT = ROOT / "config" / "throughput.yaml"
_USED, _ASKED = ["used", "used_prompt", "used_completion"], ["asked", "prompt", "completion"]


class Rates(Declaration):
    """Tokens a second of one GPU, least and most: ``prefill`` of those read, ``decode`` of those written."""

    prefill: Annotated[Many[PositiveFloat], Len(2, 2)]
    decode: Annotated[Many[PositiveFloat], Len(2, 2)]


def lines(preset: Preset, cells: Sequence[Cell], source: Preset, gpu: str | None) -> Iterator[str]:
    """Yield what a forecast says: calls, tokens, cost; what endpoints with prices charge; hours of servers or a GPU.

    Raises UserError where nothing like the cells was measured, or no speed is known.
    """
    found, unlike = forecast(preset, cells, source)
    simulated = f" (SIMULATED, replies of {source.length_scale:g} of their length)" if source.simulated else ""
    yield f"{len(cells) - len(unlike)} cells of preset {preset.name}, from {source.name}{simulated}."
    if unlike:
        yield f"{len(unlike)} cells are like none of it: {', '.join(sorted({one.method for one in unlike}))}."
    for level in ("method", "backbone"):
        table = found.groupby(level=level, sort=False).sum()[["used", *_ASKED, "cost"]]
        table.loc["all"] = table.sum()
        yield table.to_string(float_format=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    if preset.simulated:
        return
    asked = _tokens(found).index
    has_prices = False
    if preset.servers or endpoints.is_named():
        for currency, each in charges(found, config.servers(preset, asked)).items():
            has_prices = True
            said = ", ".join(f"{key} {cost:.3g}" for key, cost in each.dropna().items())
            yield f"Asked calls at the prices of the endpoints: {said}, all {each.sum():.3g} {currency}."
    rates = {} if gpu else speeds(preset)
    if rates.keys() >= set(asked):
        hours = server_hours(found, rates)
        said = ", ".join(f"{key} {each:.2g}" for key, each in hours.items())
        yield (
            f"Hours of the servers, kept full, at the speeds of `gmr health`: {said}; {hours.max():.2g} where each "
            f"backbone has a machine of its own, {hours.sum():.2g} where they share one."
        )
    elif gpu or not has_prices:
        device, spans = gpu_hours(found, gpu)
        spans.loc["all"] = spans.sum()
        said = ", ".join(f"{key} {low:.2g} to {high:.2g}" for key, low, high in spans.itertuples())
        yield f"Hours of one {device}, kept full, by the assumptions of config/throughput.yaml: {said}."


def forecast(preset: Preset, cells: Sequence[Cell], source: Preset) -> tuple[pd.DataFrame, list[Cell]]:
    """Return calls, tokens and cost of a run by method and backbone, and the cells like which none was measured."""
    runs = sorted((layout.RESULTS / source.name / "cells").glob("*/*/*/seed*/run.json"))
    measured = [cell for cell in map(layout.cell_of, (run.parent for run in runs)) if cell is not None]
    stand_ins = peers(preset, source)
    pairs = [(cell, most_like(cell, measured, stand_ins)) for cell in cells]
    parts = [_scaled(preset, cell, source, like).assign(method=cell.method) for cell, like in pairs if like]
    if not parts:
        others = sorted({run.parts[1] for run in layout.RESULTS.glob("*/cells/*/*/*/seed*/run.json")} - {source.name})
        raise UserError(
            f"preset {source.name} has finished no cell like these; measure a slice first: snakemake --cores all cells "
            f"--config preset={source.name} limit='{{share: 0.05}}' seeds='[0]'"
            + (f"; or take finished cells of another preset: --from {' or '.join(others)}" if others else "")
        )
    return pd.concat(parts).groupby(["method", "backbone"], sort=False).sum(), [one for one, like in pairs if not like]


def peers(preset: Preset, source: Preset) -> dict[str, str]:
    """Return for each backbone of a preset one of another: itself, else that of its place by size, from the largest."""
    sizes = {key: one.parameters_b for chosen in (source, preset) for key, one in config.backbones(chosen).items()}
    ranked, theirs = (sorted(one.backbones, key=lambda key: -sizes[key]) for one in (preset, source))
    step = (len(theirs) - 1) / max(len(ranked) - 1, 1)
    places = {key: theirs[round(number * step)] for number, key in enumerate(ranked)}
    return {key: key if key in theirs else place for key, place in places.items()}


def most_like(cell: Cell, measured: Sequence[Cell], stand_ins: Mapping[str, str]) -> Cell | None:
    """Return the cell itself, else its like of another seed, backbone, benchmark or variant, in this order, or None.

    Of other backbones the one that stands in for the cell's comes first.
    """
    wanted = [cell.method, cell.benchmark, stand_ins.get(cell.backbone, cell.backbone), cell.seed]

    def kind(one: Cell) -> tuple[str, bool]:
        return config.methods()[one.method].module, one.backbone == POOL

    def differs(one: Cell) -> list[bool]:
        found = [one.method, one.benchmark, one.backbone, one.seed]
        return [mine != other for mine, other in zip(wanted, found, strict=True)]

    alike = [one for one in measured if one.method in config.methods() and kind(one) == kind(cell)]
    return min(alike, key=differs, default=None)


def gpu_hours(amounts: pd.DataFrame, gpu: str | None, path: Path = THROUGHPUT) -> tuple[str, pd.DataFrame]:
    """Return the GPU, by default the first of the table, and its ``least`` and ``most`` hours by backbone."""
    table: dict[str, dict[str, Rates]] = files.read(path, dict[str, dict[str, Rates]])
    gpu = gpu or next(iter(table))
    if gpu not in table:
        raise unknown("GPU", gpu, table, str(path))
    tokens = _tokens(amounts)
    if strange := [backbone for backbone in tokens.index if backbone not in table[gpu]]:
        raise UserError(
            f"no speed of {strange[0]} is known: measure that of its servers by `gmr health`, or enter it in {path} "
            f"and name the GPU by --gpu ({gpu} has {', '.join(table[gpu])})"
        )
    found = {}
    for place, name in ((1, "least"), (0, "most")):
        rates = [(table[gpu][one].prefill[place], table[gpu][one].decode[place]) for one in tokens.index]
        found[name] = (tokens / pd.DataFrame(rates, tokens.index, tokens.columns)).sum(axis=1) / 3600
    return gpu, pd.DataFrame(found)


def speeds(preset: Preset) -> dict[str, tuple[float, float]]:
    """Return tokens a second that all servers of a backbone read and write, as ``gmr health`` timed its weights."""
    paths = layout.served(preset.name, "any").parent.glob("*.json")
    found = {}
    records = [record for path in paths if (record := orjson.loads(path.read_bytes()))["weights"] == preset.weights]
    for record in sorted(records, key=lambda one: str(one["asked"])):
        for key, one in record["backbones"].items():
            each = [Speed(**server["speed"]) for server in one["servers"] if "speed" in server]
            if each:
                found[key] = (sum(speed.read for speed in each), sum(speed.together for speed in each))
    return found


def server_hours(amounts: pd.DataFrame, rates: Mapping[str, tuple[float, float]]) -> pd.Series[float]:
    """Return the hours that servers of these :func:`speeds`, kept full, take by backbone."""
    tokens = _tokens(amounts)
    written = pd.DataFrame([rates[key] for key in tokens.index], tokens.index, tokens.columns)
    return (tokens / written).sum(axis=1) / 3600


def charges(amounts: pd.DataFrame, places: Mapping[str, Endpoint]) -> pd.DataFrame:
    """Return what asked calls cost at the endpoints that state a price, by backbone; columns are currencies."""
    tokens = _tokens(amounts)
    prices = {key: place.price for key, place in places.items() if place.price is not None}
    if prices and (lacking := [key for key in tokens.index if key not in prices]):
        raise UserError(f"the endpoint of {next(iter(prices))} has a price and that of {lacking[0]} has none; add it")
    found = {
        key: {places[key].currency: (tokens["prompt"][key] * one.input + tokens["completion"][key] * one.output) / 1e6}
        for key, one in prices.items()
    }
    return pd.DataFrame.from_dict(found, orient="index")


def _tokens(amounts: pd.DataFrame) -> pd.DataFrame:
    return amounts.groupby(level="backbone", sort=False)[["prompt", "completion"]].sum()


def _scaled(preset: Preset, cell: Cell, source: Preset, like: Cell) -> pd.DataFrame:
    backbones, asked = config.backbones(preset), config.backbones_of(preset, cell)
    prepared = layout.manifest(preset.name, cell.benchmark).exists() or preset.data != source.data
    questions = _questions(preset if prepared else source, cell.benchmark)
    splits = {"train": (questions.train, preset.limit.train), "test": (questions.test, preset.limit.test)}
    wanted = {phase: preset.limit.count(len(items), most) for phase, (items, most) in splits.items()}
    longest = max(backbones[key].max_tokens for key in asked)
    trained_on = {item.id for item in _questions(source, like.benchmark).train}
    rows = _rows(layout.cell(source.name, like), trained_on, preset.limit.epochs)
    rows[["used_completion", "completion"]] = rows[["used_completion", "completion"]].clip(upper=longest)
    had = rows.groupby("phase")["item_id"].nunique()
    factors = {"neither": 1.0, **{phase: wanted[phase] / had[phase] for phase in wanted if phase in had}}
    total = rows[[*_USED, *_ASKED]].mul(rows["phase"].map(factors), axis=0).groupby(rows["backbone"]).sum()
    if not set(total.index) <= set(asked):
        # Measured on other backbones: nothing says which of these would be asked how often.
        total = pd.DataFrame([total.sum() / len(asked)] * len(asked), pd.Index(asked, name="backbone"))
    spent = [backbones[key].cost(row["used_prompt"], row["used_completion"]) for key, row in total.iterrows()]
    return total.assign(cost=spent).reset_index()


def _rows(folder: Path, trained_on: Iterable[str], epochs: int | None) -> pd.DataFrame:
    columns = ["item_id", "backbone", "key", "prompt_tokens", "completion_tokens"]
    tables = [pd.read_parquet(folder / "calls.parquet", columns=columns).assign(table="calls")]
    if (learned := folder / "training_calls.parquet").exists():
        passes = pd.read_parquet(learned, columns=[*columns, "epoch"])
        made = passes["epoch"] <= (math.inf if epochs is None else epochs)
        tables.insert(0, passes[made].drop(columns="epoch").assign(table="training"))
    uses = pd.concat(tables, ignore_index=True)
    phases = uses["item_id"].isin(trained_on).map({True: "train", False: "neither"})
    uses = uses.assign(phase=phases.where(uses["table"] != "calls", "test"), used=1)
    uses = uses.rename(columns={"prompt_tokens": "used_prompt", "completion_tokens": "used_completion"})
    return uses.assign(**{a: uses[u] * ~uses["key"].duplicated() for a, u in zip(_ASKED, _USED, strict=True)})


def _questions(preset: Preset, benchmark: str) -> Prepared:
    return read(layout.manifest(preset.name, benchmark), layout.items(preset.name, benchmark))

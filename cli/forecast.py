"""Forecast of a run: the distinct calls of a finished slice, scaled to the questions of the run.

Test questions take what the measured ones took on average, and so do training questions over all passes that were
measured and that the run makes. Calls about no question, such as the proposals of AFlow's search, stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cache
from operator import ne

import numpy as np
import orjson
import pandas as pd

from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError
from harness.llm import endpoints
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset

_TOKENS = ["prompt", "completion"]
# Questions do not change while a forecast is made.
_read = cache(read)


def lines(preset: Preset, cells: Sequence[Cell], source: Preset) -> Iterator[str]:
    """Yield the lines of a forecast: calls and tokens; charges of priced endpoints; hours of timed servers.

    Raises UserError if nothing like the cells was measured, or some endpoints have a price and others none.
    """
    amounts, unlike = forecast(preset, cells, source)
    simulated = f" (SIMULATED, replies of {source.length_scale:g} of their length)" if source.simulated else ""
    yield f"{len(cells) - len(unlike)} cells of preset {preset.name}, from {source.name}{simulated}."
    if unlike:
        yield f"{len(unlike)} cells are like none of it: {', '.join(sorted({cell.method for cell in unlike}))}."
    for level in ("method", "backbone"):
        table = amounts.groupby(level=level, sort=False).sum()
        table.loc["all"] = table.sum()
        yield table.to_string(float_format=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    if preset.simulated:
        return
    tokens = amounts.groupby(level="backbone", sort=False)[_TOKENS].sum()
    is_named = preset.servers or endpoints.named_file()
    costs = charges(tokens, config.servers(preset, tokens.index) if is_named else {})
    for currency, charged in costs.groupby("currency")["cost"]:
        text = ", ".join(f"{key} {cost:.3g}" for key, cost in charged.items())
        yield f"At the prices of the endpoints: {text}, all {charged.sum():.3g} {currency}."
    rates = speeds(preset)
    if untimed := ", ".join(str(key) for key in tokens.index if key not in rates):
        if costs.empty:
            yield f"No hours: `gmr health --preset {preset.name}` times servers, and has not timed {untimed}."
        return
    hours = (tokens / np.array([rates[str(key)] for key in tokens.index])).sum(axis=1) / 3600
    text = ", ".join(f"{key} {value:.2g}" for key, value in hours.items())
    yield f"Hours of servers kept full, by the speeds of `gmr health`: {text}; {hours.sum():.2g} where they share one."


def forecast(preset: Preset, cells: Sequence[Cell], source: Preset) -> tuple[pd.DataFrame, list[Cell]]:
    """Return calls and tokens of a run by method and backbone, and the cells like which none was measured."""
    measured = _finished(source.name)
    pairs = [(cell, most_like(cell, measured, preset.extra)) for cell in cells]
    # The seed of a cell does not show in what is forecast.
    scaled = cache(lambda cell, like: _scaled(preset, cell, source, like))
    parts = [scaled(replace(cell, seed=0), like).assign(method=cell.method) for cell, like in pairs if like]
    if not parts:
        raise UserError(
            f"preset {source.name} has finished no cell like these; name one that has by --from, or measure a slice: "
            f"snakemake --cores all cells --config preset={source.name} limit='{{share: 0.05}}' seeds='[0]'"
        )
    amounts = pd.concat(parts).groupby(["method", "backbone"], sort=False).sum()
    return amounts, [cell for cell, like in pairs if not like]


def most_like(cell: Cell, measured: Sequence[Cell], extra: str | None = None) -> Cell | None:
    """Return the cell itself, else its like of another seed, backbone, benchmark or variant, in this order, or None."""
    methods = config.methods(extra)
    alike = [
        other
        for other in measured
        if other.method in methods
        and methods[other.method].module == methods[cell.method].module
        and (other.backbone == POOL) == (cell.backbone == POOL)
    ]
    return min(alike, key=lambda other: list(map(ne, astuple(cell), astuple(other))), default=None)


def speeds(preset: Preset) -> dict[str, tuple[float, float]]:
    """Return tokens a second that the server of a backbone reads and writes, as ``gmr health`` timed its weights."""
    paths = layout.served(preset.name, "any").parent.glob("*.json")
    records = sorted((orjson.loads(path.read_bytes()) for path in paths), key=lambda record: str(record["asked"]))
    return {
        key: (backbone["speed"]["read"], backbone["speed"]["together"])
        for record in records
        if record["weights"] == preset.weights
        for key, backbone in record["backbones"].items()
        if "speed" in backbone
    }


def charges(tokens: pd.DataFrame, servers: Mapping[str, Endpoint]) -> pd.DataFrame:
    """Return currency and cost of tokens at the endpoints that state a price, by backbone."""
    prices = {key: server.price for key, server in servers.items() if server.price is not None}
    if prices and (lacking := [key for key in tokens.index if key not in prices]):
        raise UserError(f"the endpoint of {next(iter(prices))} has a price and that of {lacking[0]} has none; add it")
    costs = {
        key: (servers[key].currency, tokens.loc[key] @ [price.input, price.output] / 1e6)
        for key, price in prices.items()
    }
    return pd.DataFrame.from_dict(costs, orient="index", columns=["currency", "cost"])


def _finished(name: str) -> list[Cell]:
    return [cell for cell in layout.cells(name) if (layout.cell(name, cell) / "run.json").exists()]


def _scaled(preset: Preset, cell: Cell, source: Preset, like: Cell) -> pd.DataFrame:
    """Return calls and tokens of a cell by backbone, from those of a measured one."""
    declared, backbones = config.backbones(preset), config.backbones_of(preset, cell)
    limit, longest = preset.limit, max(declared[key].max_tokens for key in backbones)
    is_prepared = layout.manifest(preset.name, cell.benchmark).exists() or preset.data != source.data
    run, measured = _questions(preset if is_prepared else source, cell.benchmark), _questions(source, like.benchmark)
    parts = []
    for table, items, bound, known in (
        ("training_calls", run.train, limit.train, measured.train),
        ("calls", run.test, limit.test, measured.test),
    ):
        path = layout.cell(source.name, like) / f"{table}.parquet"
        if not path.exists():
            continue
        calls = pd.read_parquet(path)
        if "epoch" in calls and limit.epochs is not None:
            calls = calls[calls["epoch"] <= limit.epochs]
        is_of_question = calls["item_id"].isin({item.id for item in known})
        factor = limit.used_questions(len(items), bound) / max(calls["item_id"][is_of_question].nunique(), 1)
        amounts = calls[["prompt_tokens", "completion_tokens"]].clip(upper=[math.inf, longest], axis=1)
        amounts = amounts.set_axis(_TOKENS, axis=1).assign(calls=1)[["calls", *_TOKENS]]
        amounts = amounts.mul(is_of_question.map({True: factor, False: 1.0}), axis=0)
        # What has the same key was asked once.
        parts.append(amounts.assign(backbone=calls["backbone"])[~calls["key"].duplicated()])
    total = pd.concat(parts).groupby("backbone").sum()
    if not set(total.index) <= set(backbones):
        # Measured on other backbones: nothing says which of these would be asked how often.
        total = pd.DataFrame([total.sum() / len(backbones)] * len(backbones), pd.Index(backbones, name="backbone"))
    return total.reset_index()


def _questions(preset: Preset, benchmark: str) -> Prepared:
    return _read(layout.manifest(preset.name, benchmark).resolve(), layout.items(preset.name, benchmark).resolve())

"""Forecast of a run: calls and tokens per question of a finished slice, times the questions of the run.

Test questions cost what the measured ones cost on average, and so do training questions over all passes that were
measured and that the run makes. Calls about no question, such as the proposals of AFlow's search, stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import orjson
import pandas as pd

from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError
from harness.llm import endpoints
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset

_USED, _ASKED = ["used", "used_prompt", "used_completion"], ["asked", "prompt", "completion"]
# Questions do not change while a forecast is made.
_read = cache(read)


def lines(preset: Preset, cells: Sequence[Cell], source: Preset) -> Iterator[str]:
    """Yield the lines of a forecast: calls, tokens, cost; charges of priced endpoints; hours of the servers.

    Raises UserError if nothing like the cells was measured, or some endpoints have a price and others none.
    """
    amounts, unlike = forecast(preset, cells, source)
    simulated = f" (SIMULATED, replies of {source.length_scale:g} of their length)" if source.simulated else ""
    yield f"{len(cells) - len(unlike)} cells of preset {preset.name}, from {source.name}{simulated}."
    if unlike:
        yield f"{len(unlike)} cells are like none of it: {', '.join(sorted({cell.method for cell in unlike}))}."
    for level in ("method", "backbone"):
        table = amounts.groupby(level=level, sort=False).sum()[["used", *_ASKED, "cost"]]
        table.loc["all"] = table.sum()
        yield table.to_string(float_format=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
    if preset.simulated:
        return
    tokens = amounts.groupby(level="backbone", sort=False)[["prompt", "completion"]].sum()
    is_named = preset.servers or endpoints.named_file()
    costs = charges(tokens, config.servers(preset, tokens.index) if is_named else {})
    for currency, cost in costs.items():
        text = ", ".join(f"{key} {value:.3g}" for key, value in cost.dropna().items())
        yield f"Asked calls at the prices of the endpoints: {text}, all {cost.sum():.3g} {currency}."
    rates = speeds(preset)
    untimed = [str(key) for key in tokens.index if key not in rates]
    if not untimed:
        hours = server_hours(tokens, rates)
        text = ", ".join(f"{key} {value:.2g}" for key, value in hours.items())
        yield (
            f"Hours of the servers, kept full, at the speeds of `gmr health`: {text}; {hours.max():.2g} where each "
            f"backbone has a machine of its own, {hours.sum():.2g} where they share one."
        )
    elif costs.empty:
        yield f"No hours: `gmr health --preset {preset.name}` times servers, and has not timed {', '.join(untimed)}."


def forecast(preset: Preset, cells: Sequence[Cell], source: Preset) -> tuple[pd.DataFrame, list[Cell]]:
    """Return calls, tokens and cost of a run by method and backbone, and the cells like which none was measured."""
    measured = _finished(source.name)
    pairs = [(cell, most_like(cell, measured, preset.extra)) for cell in cells]
    # The seed of a cell does not show in what is forecast.
    scaled = cache(lambda cell, like: _scaled(preset, cell, source, like))
    parts = [scaled(replace(cell, seed=0), like).assign(method=cell.method) for cell, like in pairs if like]
    if not parts:
        presets = sorted(path.name for path in layout.RESULTS.glob("*"))
        others = [name for name in presets if name != source.name and _finished(name)]
        raise UserError(
            f"preset {source.name} has finished no cell like these; measure a slice first: snakemake --cores all cells "
            f"--config preset={source.name} limit='{{share: 0.05}}' seeds='[0]'"
            + (f"; or take finished cells of another preset: --from {' or '.join(others)}" if others else "")
        )
    amounts = pd.concat(parts).groupby(["method", "backbone"], sort=False).sum()
    return amounts, [cell for cell, like in pairs if not like]


def most_like(cell: Cell, measured: Sequence[Cell], extra: str | None = None) -> Cell | None:
    """Return the cell itself, else its like of another seed, backbone, benchmark or variant, in this order, or None."""
    methods = config.methods(extra)

    def kind(other: Cell) -> tuple[str, bool]:
        return methods[other.method].module, other.backbone == POOL

    def differences(other: Cell) -> list[bool]:
        return [a != b for a, b in zip(astuple(cell), astuple(other), strict=True)]

    alike = [other for other in measured if other.method in methods and kind(other) == kind(cell)]
    return min(alike, key=differences, default=None)


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


def server_hours(tokens: pd.DataFrame, rates: Mapping[str, tuple[float, float]]) -> pd.Series[float]:
    """Return the hours by backbone that servers take which, kept full, read and write so many tokens a second."""
    by_backbone = pd.DataFrame([rates[key] for key in tokens.index], tokens.index, tokens.columns)
    return (tokens / by_backbone).sum(axis=1) / 3600


def charges(tokens: pd.DataFrame, servers: Mapping[str, Endpoint]) -> pd.DataFrame:
    """Return what tokens cost at the endpoints that state a price, by backbone; columns are currencies."""
    prices = {key: server.price for key, server in servers.items() if server.price is not None}
    if prices and (lacking := [key for key in tokens.index if key not in prices]):
        raise UserError(f"the endpoint of {next(iter(prices))} has a price and that of {lacking[0]} has none; add it")
    costs: dict[str, dict[str | None, float]] = {}
    for key, price in prices.items():
        cost = tokens["prompt"][key] * price.input + tokens["completion"][key] * price.output
        costs[key] = {servers[key].currency: cost / 1e6}
    return pd.DataFrame.from_dict(costs, orient="index")


def _finished(name: str) -> list[Cell]:
    return [cell for cell in layout.cells(name) if (layout.cell(name, cell) / "run.json").exists()]


def _scaled(preset: Preset, cell: Cell, source: Preset, like: Cell) -> pd.DataFrame:
    """Return calls, tokens and cost of a cell by backbone, from those of a measured one."""
    declared, backbones = config.backbones(preset), config.backbones_of(preset, cell)
    is_prepared = layout.manifest(preset.name, cell.benchmark).exists() or preset.data != source.data
    questions = _questions(preset if is_prepared else source, cell.benchmark)
    splits = {"train": (questions.train, preset.limit.train), "test": (questions.test, preset.limit.test)}
    wanted = {phase: preset.limit.used_questions(len(items), most) for phase, (items, most) in splits.items()}
    longest = max(declared[key].max_tokens for key in backbones)
    training_ids = {item.id for item in _questions(source, like.benchmark).train}
    uses = _uses(layout.cell(source.name, like), training_ids, preset.limit.epochs)
    uses[["used_completion", "completion"]] = uses[["used_completion", "completion"]].clip(upper=longest)
    measured = uses.groupby("phase")["item_id"].nunique()
    factors = {"neither": 1.0, **{phase: wanted[phase] / measured[phase] for phase in wanted if phase in measured}}
    total = uses[[*_USED, *_ASKED]].mul(uses["phase"].map(factors), axis=0).groupby(uses["backbone"]).sum()
    if not set(total.index) <= set(backbones):
        # Measured on other backbones: nothing says which of these would be asked how often.
        total = pd.DataFrame([total.sum() / len(backbones)] * len(backbones), pd.Index(backbones, name="backbone"))
    costs = [declared[key].cost(row["used_prompt"], row["used_completion"]) for key, row in total.iterrows()]
    return total.assign(cost=costs).reset_index()


def _uses(folder: Path, training_ids: Iterable[str], epochs: int | None) -> pd.DataFrame:
    """Return the uses of calls of a cell: phase, calls and tokens used, and those asked (0 where one is repeated)."""
    columns = ["item_id", "backbone", "key", "prompt_tokens", "completion_tokens"]
    uses = pd.read_parquet(folder / "calls.parquet", columns=columns).assign(phase="test")
    if (path := folder / "training_calls.parquet").exists():
        passes = pd.read_parquet(path, columns=[*columns, "epoch"])
        passes = passes[passes["epoch"] <= (math.inf if epochs is None else epochs)].drop(columns="epoch")
        phases = passes["item_id"].isin(training_ids).map({True: "train", False: "neither"})
        uses = pd.concat([passes.assign(phase=phases), uses], ignore_index=True)
    uses = uses.rename(columns={"prompt_tokens": "used_prompt", "completion_tokens": "used_completion"}).assign(used=1)
    is_first = ~uses["key"].duplicated()
    return uses.assign(**{asked: uses[used] * is_first for asked, used in zip(_ASKED, _USED, strict=True)})


def _questions(preset: Preset, benchmark: str) -> Prepared:
    return _read(layout.manifest(preset.name, benchmark).resolve(), layout.items(preset.name, benchmark).resolve())

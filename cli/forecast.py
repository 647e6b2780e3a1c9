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
from typing import Annotated

import orjson
import pandas as pd
from annotated_types import Len
from pydantic import PositiveFloat

from analysis.claims.judge import primary_tail
from analysis.claims.measured import asked_by
from analysis.claims.power import SEEDS, Variation, chances, design_of
from analysis.claims.statements import CLAIMS
from analysis.registry import Selection
from cli.speed import Speed
from harness import files
from harness.benchmarks.prepare import Prepared, read
from harness.errors import UserError, unknown
from harness.files import ROOT, Declaration, Many
from harness.llm import endpoints
from harness.llm.budget import Budget
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset

THROUGHPUT = ROOT / "config" / "throughput.yaml"
_USED, _ASKED = ["used", "used_prompt", "used_completion"], ["asked", "prompt", "completion"]
# Questions do not change while a forecast is made.
_read = cache(read)


class Rates(Declaration):
    """Tokens a second of one GPU, least and most: ``prefill`` of those read, ``decode`` of those written."""

    prefill: Annotated[Many[PositiveFloat], Len(2, 2)]
    decode: Annotated[Many[PositiveFloat], Len(2, 2)]


def lines(preset: Preset, cells: Sequence[Cell], source: Preset, gpu: str | None) -> Iterator[str]:
    """Yield the lines of a forecast: calls, tokens, cost; charges of priced endpoints; hours of servers or a GPU.

    Raises UserError if nothing like the cells was measured, or no speed is known.
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
    yield from decided(preset, source)
    if preset.simulated:
        return
    backbones = _tokens(amounts).index
    has_prices = False
    if preset.servers or endpoints.named_file():
        for currency, costs in charges(amounts, config.servers(preset, backbones)).items():
            has_prices = True
            text = ", ".join(f"{key} {cost:.3g}" for key, cost in costs.dropna().items())
            yield f"Asked calls at the prices of the endpoints: {text}, all {costs.sum():.3g} {currency}."
    rates = {} if gpu else speeds(preset)
    if rates.keys() >= set(backbones):
        hours = server_hours(amounts, rates)
        text = ", ".join(f"{key} {value:.2g}" for key, value in hours.items())
        yield (
            f"Hours of the servers, kept full, at the speeds of `gmr health`: {text}; {hours.max():.2g} where each "
            f"backbone has a machine of its own, {hours.sum():.2g} where they share one."
        )
    elif gpu or not has_prices:
        device, spans = gpu_hours(amounts, gpu)
        spans.loc["all"] = spans.sum()
        text = ", ".join(f"{key} {low:.2g} to {high:.2g}" for key, low, high in spans.itertuples())
        yield f"Hours of one {device}, kept full, by the assumptions of config/throughput.yaml: {text}."


def forecast(preset: Preset, cells: Sequence[Cell], source: Preset) -> tuple[pd.DataFrame, list[Cell]]:
    """Return calls, tokens and cost of a run by method and backbone, and the cells like which none was measured."""
    measured = _finished(source.name)
    stand_ins = peers(preset, source)
    pairs = [(cell, most_like(cell, measured, stand_ins, preset.extra)) for cell in cells]
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
    return pd.concat(parts).groupby(["method", "backbone"], sort=False).sum(), [
        cell for cell, like in pairs if not like
    ]


def _finished(name: str) -> list[Cell]:
    return [cell for cell in layout.cells(name) if (layout.cell(name, cell) / "run.json").exists()]


def peers(preset: Preset, source: Preset) -> dict[str, str]:
    """Return for each backbone of a preset one of another: itself, else that of its rank by size, from the largest."""
    declared = {**config.backbones(source), **config.backbones(preset)}
    ranked, measured = (
        sorted(each.backbones, key=lambda key: -declared[key].parameters_b) for each in (preset, source)
    )
    step = (len(measured) - 1) / max(len(ranked) - 1, 1)
    return {key: key if key in measured else measured[round(rank * step)] for rank, key in enumerate(ranked)}


def most_like(
    cell: Cell, measured: Sequence[Cell], stand_ins: Mapping[str, str], extra: str | None = None
) -> Cell | None:
    """Return the cell itself, else its like of another seed, backbone, benchmark or variant, in this order, or None.

    Of other backbones the one that stands in for the cell's comes first.
    """
    methods = config.methods(extra)
    wanted = replace(cell, backbone=stand_ins.get(cell.backbone, cell.backbone))

    def kind(other: Cell) -> tuple[str, bool]:
        return methods[other.method].module, other.backbone == POOL

    def differences(other: Cell) -> list[bool]:
        return [a != b for a, b in zip(astuple(wanted), astuple(other), strict=True)]

    alike = [other for other in measured if other.method in methods and kind(other) == kind(cell)]
    return min(alike, key=differences, default=None)


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
    rates = {key: table[gpu][key] for key in tokens.index}
    spans = {
        name: server_hours(amounts, {key: (rate.prefill[place], rate.decode[place]) for key, rate in rates.items()})
        for place, name in ((1, "least"), (0, "most"))
    }
    return gpu, pd.DataFrame(spans)


def speeds(preset: Preset) -> dict[str, tuple[float, float]]:
    """Return tokens a second that the server of a backbone reads and writes, as ``gmr health`` timed its weights."""
    paths = layout.served(preset.name, "any").parent.glob("*.json")
    records = sorted((orjson.loads(path.read_bytes()) for path in paths), key=lambda record: str(record["asked"]))
    rates = {}
    for record in records:
        for key, backbone in record["backbones"].items() if record["weights"] == preset.weights else ():
            if "speed" in backbone:
                speed = Speed(**backbone["speed"])
                rates[key] = (speed.read, speed.together)
    return rates


def server_hours(amounts: pd.DataFrame, rates: Mapping[str, tuple[float, float]]) -> pd.Series[float]:
    """Return the hours by backbone that servers take which, kept full, read and write so many tokens a second."""
    tokens = _tokens(amounts)
    by_backbone = pd.DataFrame([rates[key] for key in tokens.index], tokens.index, tokens.columns)
    return (tokens / by_backbone).sum(axis=1) / 3600


def charges(amounts: pd.DataFrame, places: Mapping[str, Endpoint]) -> pd.DataFrame:
    """Return what asked calls cost at the endpoints that state a price, by backbone; columns are currencies."""
    tokens = _tokens(amounts)
    prices = {key: place.price for key, place in places.items() if place.price is not None}
    if prices and (lacking := [key for key in tokens.index if key not in prices]):
        raise UserError(f"the endpoint of {next(iter(prices))} has a price and that of {lacking[0]} has none; add it")
    costs: dict[str, dict[str | None, float]] = {}
    for key, price in prices.items():
        cost = tokens["prompt"][key] * price.input + tokens["completion"][key] * price.output
        costs[key] = {places[key].currency: cost / 1e6}
    return pd.DataFrame.from_dict(costs, orient="index")


def _tokens(amounts: pd.DataFrame) -> pd.DataFrame:
    return amounts.groupby(level="backbone", sort=False)[["prompt", "completion"]].sum()


def _scaled(preset: Preset, cell: Cell, source: Preset, like: Cell) -> pd.DataFrame:
    """Return calls, tokens and cost of a cell by backbone, from those of a measured one."""
    declared, backbones = config.backbones(preset), config.backbones_of(preset, cell)
    questions = _questions(_prepared_by(preset, source, cell.benchmark), cell.benchmark)
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


def _prepared_by(preset: Preset, source: Preset, benchmark: str) -> Preset:
    """Return the preset whose questions are those of a run: its own, or the measured one's where they are the same."""
    is_prepared = layout.manifest(preset.name, benchmark).exists() or preset.data != source.data
    return preset if is_prepared else source


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


def decided(preset: Preset, source: Preset) -> Iterator[str]:
    """Yield what the primary endpoints cost by number of seeds, and how probable each is to be reproduced.

    Yields nothing for a preset without one of their rows or its questions, or if nothing like them was measured.
    """
    primary = [claim for claim in CLAIMS if claim.primary]
    rows = {asked[:3] for asked in asked_by(primary)}
    prepared = {benchmark: _prepared_by(preset, source, benchmark) for *_, benchmark in rows}
    if not all(layout.manifest(each.name, benchmark).exists() for benchmark, each in prepared.items()):
        return
    tests = {benchmark: len(_questions(each, benchmark).test) for benchmark, each in prepared.items()}
    questions = {key: preset.limit.used_questions(size, preset.limit.test) for key, size in tests.items()}
    measured, stand_ins = _finished(source.name), peers(preset, source)
    budget, columns = preset.budget or Budget(), {}
    for count in SEEDS:
        every = Selection(methods=tuple(config.methods()), seeds=tuple(range(count))).cells(preset)
        cells = [cell for cell in every if (cell.method, cell.backbone, cell.benchmark) in rows]
        has_all = len({(cell.method, cell.backbone, cell.benchmark) for cell in cells}) == len(rows)
        if not (has_all and all(most_like(cell, measured, stand_ins) for cell in cells)):
            return
        amounts, _ = forecast(preset, cells, source)
        calls, prompt, completion, cost = amounts[[*_ASKED, "cost"]].sum()
        limits = [(calls, budget.calls), (prompt + completion, budget.tokens), (cost, budget.cost)]
        is_within = all(limit is None or amount <= limit for amount, limit in limits)
        numbers = {"calls": f"{calls:,.0f}", "tokens": f"{prompt + completion:,.0f}", "cost": f"{cost:.3g}"}
        within = {"within the budget": "yes" if is_within else "no"} if preset.budget else {}
        design = design_of(preset, range(count), questions)
        by_claim = chances(primary, design, Variation(), primary_tail=primary_tail(CLAIMS))
        chance_of = {claim.key: f"{100 * by_claim[claim.key].reproduced:.0f} %" for claim in primary}
        columns["1 seed" if count == 1 else f"{count} seeds"] = {**numbers, **within, **chance_of}
    yield "Primary endpoints: what their cells take, and how probable each is to be reproduced if the paper is right."
    yield pd.DataFrame(columns).to_string()

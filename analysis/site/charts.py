"""Charts of the index, from the CSV files behind the figures and the main table: nothing is computed here."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.costs import UNIT
from analysis.plane import EMPHASISED
from analysis.published import load
from harness.runner import config

Record = Mapping[str, str]
_COST = "cost of a question (1e-4)"
_ACCURACY = "accuracy (%)"
_COSTS = {"measured": "cost_per_query", "published": "published_cost_per_query"}
_HOVER = "%{hovertext}<extra></extra>"
_TICKS = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 2, 5)]
_SYMBOLS = ("circle", "diamond", "square")
# As many as style.css has.
_COLOURS = 8
_ENTROPIES = {
    "entropy_write": "write",
    "entropy_retrieval": "retrieve",
    "entropy_halt": "halt",
    "entropy_role": "role",
    "entropy_backbone": "backbone",
}


@dataclass(frozen=True)
class Chart:
    """One chart, as ``GMR.chart`` of ``assets/charts.js`` takes it.

    Attributes:
        title: What it shows.
        traces: Of plotly; all texts are plain.
        layout: Of plotly.
    """

    title: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]


class Titles:
    """How keys of methods, backbones and benchmarks read.

    Args:
        benchmarks: Titles of the benchmarks of a run.
    """

    def __init__(self, benchmarks: Mapping[str, str]) -> None:
        published = load()
        self.benchmarks = {**published.benchmarks, **benchmarks}
        self._methods = {key: entry.title for key, entry in config.methods().items()}
        self._rows = published.backbones

    def method(self, record: Record) -> str:
        """Of the method."""
        return self._methods.get(record["method"], record["method"])

    def row(self, record: Record) -> str:
        """Of method and backbone."""
        backbone = record.get("backbone", config.POOL)
        return f"{self.method(record)}, {self._rows.get(backbone, backbone)}"


def read(path: Path) -> list[Record]:
    """The lines of a CSV file; those before its head say what it is."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def of_figure(key: str, path: Path, titles: Titles) -> list[Chart]:
    """The charts of a figure, none of one that is not known here.

    Args:
        key: Of the artefact.
        path: Its CSV file.
        titles: What keys are called.
    """
    known: Mapping[str, Callable[[list[Record], Titles], list[Chart]]] = {
        "pareto_gsm": _planes,
        "pareto_he": _planes,
        "depth": _depth,
        "lambda_frontier": _weights,
        "gate_entropy": _entropies,
    }
    return known[key](read(path), titles) if key in known else []


def of_main_table(path: Path, titles: Titles, without: Iterable[str]) -> list[Chart]:
    """Accuracy against cost as measured, a chart a benchmark.

    Args:
        path: The CSV file of the main table.
        titles: What keys are called.
        without: Benchmarks that have a figure of their own.
    """
    left_out = {*without, "average"}
    return _planes([record for record in read(path) if record["benchmark"] not in left_out], titles)


def _planes(records: Sequence[Record], titles: Titles) -> list[Chart]:
    benchmarks = dict.fromkeys(record["benchmark"] for record in records)
    return [
        _plane(titles.benchmarks.get(key, key), [one for one in records if one["benchmark"] == key], titles)
        for key in benchmarks
        if any(one["benchmark"] == key and one["measured"] for one in records)
    ]


def _plane(title: str, records: Sequence[Record], titles: Titles) -> Chart:
    """Filled: measured; hollow: published, a line joins the two of a row; the steps are the two frontiers."""
    traces = [_joined(records)]
    for number, method in enumerate(dict.fromkeys(record["method"] for record in records)):
        own = [record for record in records if record["method"] == method]
        sides = {side: [one for one in own if one[side] and one.get(_COSTS[side])] for side in _COSTS}
        shown = [side for side, points in sides.items() if points]
        traces += [{**_points(side, sides[side], titles, number), "showlegend": side == shown[0]} for side in shown]
    frontiers = [_frontier(side, dash, records) for side, dash in (("measured", "solid"), ("published", "dash"))]
    layout = {
        "xaxis": {"title": {"text": _COST}, "type": "log", "tickvals": _TICKS},
        "yaxis": {"title": {"text": f"{title}, {_ACCURACY}"}},
    }
    return Chart(f"Accuracy against cost, {title}", [*traces, *filter(None, frontiers)], layout)


def _points(side: str, records: Sequence[Record], titles: Titles, number: int) -> dict[str, Any]:
    """The points of a method on one side, the paper's own as a star."""
    method = records[0]["method"]
    symbol = "star" if method == EMPHASISED else _SYMBOLS[number // _COLOURS % len(_SYMBOLS)]
    return {
        "name": titles.method(records[0]) + ("" if side == "measured" else f", {side}"),
        "legendgroup": method,
        "mode": "markers",
        "x": [UNIT * float(record[_COSTS[side]]) for record in records],
        "y": [float(record[side]) for record in records],
        "text": [titles.row(record) for record in records],
        "hovertext": [f"{titles.row(record)}, {side}\n{said(record)}" for record in records],
        "hovertemplate": _HOVER,
        "marker": {
            "symbol": symbol if side == "measured" else f"{symbol}-open",
            "size": 15 if method == EMPHASISED else 9,
            "color": f"var(--series-{number % _COLOURS + 1})",
        },
    }


def _joined(records: Sequence[Record]) -> dict[str, Any]:
    """Lines from the published to the measured point of every row that has both."""
    both = [one for one in records if all(one[side] and one.get(cost) for side, cost in _COSTS.items())]
    return {
        "mode": "lines",
        "x": [value for one in both for value in (*(UNIT * float(one[cost]) for cost in _COSTS.values()), None)],
        "y": [value for one in both for value in (*(float(one[side]) for side in _COSTS), None)],
        "line": {"width": 0.7, "color": "var(--line)"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def said(record: Record) -> str:
    """What a point says when the pointer is over it, a line a fact."""
    fitted = " (fitted to the published value)" if record.get("calibrated") == "true" else ""
    costs = [_in_unit(record.get(name, "")) for name in ("cost_per_query", "published_cost_per_query")]
    facts = {
        "measured": f"{record['measured']} %{fitted}" if record["measured"] else "",
        "95 % interval": f"{record['low']} to {record['high']} %" if record.get("low") else "",
        "questions": record.get("n", ""),
        "seeds": record.get("seeds", ""),
        "published": f"{record['published']} %" if record.get("published") else "",
        "cost of a question, measured": costs[0],
        "cost of a question, published": costs[1],
    }
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value)


def _in_unit(cost: str) -> str:
    return f"{UNIT * float(cost):.3g}e-4" if cost else ""


def _frontier(side: str, dash: str, records: Sequence[Record]) -> dict[str, Any] | None:
    best = [one for one in records if one.get(f"{side}_on_frontier") == "true"]
    corners = sorted((UNIT * float(one[_COSTS[side]]), float(one[side])) for one in best)
    if not corners:
        return None
    return {
        "name": f"frontier, {side}",
        "mode": "lines",
        "x": [cost for cost, _ in corners],
        "y": [accuracy for _, accuracy in corners],
        "line": {"shape": "hv", "dash": dash, "width": 1.5, "color": "var(--faint)"},
        "hoverinfo": "skip",
    }


def _bars(records: Sequence[Record], value: str, low: str, high: str, factor: float = 1.0) -> dict[str, Any]:
    return {
        "type": "data",
        "array": [factor * (float(one[high]) - float(one[value])) for one in records],
        "arrayminus": [factor * (float(one[value]) - float(one[low])) for one in records],
    }


def _depth(records: Sequence[Record], titles: Titles) -> list[Chart]:
    budgets = [float(record["max_depth"]) for record in records]
    common = {"x": budgets, "mode": "lines+markers", "hovertemplate": _HOVER}
    hover = [
        f"{titles.method(one)}, φ = {one['max_depth']}\n{said(one)}\nmean depth: {float(one['mean_depth']):.2f}"
        for one in records
    ]
    accuracy = {
        **common,
        "name": "accuracy (%)",
        "y": [float(one["measured"]) for one in records],
        "error_y": _bars(records, "measured", "low", "high"),
        "hovertext": hover,
    }
    cost = {
        **common,
        "name": _COST,
        "y": [UNIT * float(one["cost_per_query"]) for one in records],
        "error_y": _bars(records, "cost_per_query", "cost_low", "cost_high", UNIT),
        "hovertext": hover,
        "yaxis": "y2",
        "line": {"dash": "dash"},
    }
    title = titles.benchmarks[records[0]["benchmark"]]
    layout = {
        "xaxis": {"title": {"text": "maximum depth φ"}, "tickvals": budgets},
        "yaxis": {"title": {"text": _ACCURACY}},
        "yaxis2": {"title": {"text": _COST}, "overlaying": "y", "side": "right", "rangemode": "tozero"},
        "meta": {"columns": ["maximum depth φ", "value"]},
    }
    return [Chart(f"Accuracy and cost by maximum depth, {title}", [accuracy, cost], layout)]


def _weights(records: Sequence[Record], titles: Titles) -> list[Chart]:
    charts = []
    for key in dict.fromkeys(record["benchmark"] for record in records):
        own = sorted((one for one in records if one["benchmark"] == key), key=lambda one: float(one["lambda_c"]))
        traces = [_weight(one, titles) for one in own]
        frontier = _frontier("measured", "solid", [{**one, "measured_on_frontier": one["on_frontier"]} for one in own])
        layout = {"xaxis": {"title": {"text": _COST}}, "yaxis": {"title": {"text": _ACCURACY}}}
        title = f"Accuracy against cost by cost weight, {titles.benchmarks[key]}"
        charts.append(Chart(title, [*traces, *([frontier] if frontier else [])], layout))
    return charts


def _weight(record: Record, titles: Titles) -> dict[str, Any]:
    name = f"λ_c = {record['lambda_c']}"
    return {
        "name": name,
        "mode": "markers",
        "x": [UNIT * float(record["cost_per_query"])],
        "y": [float(record["measured"])],
        "error_x": _bars([record], "cost_per_query", "cost_low", "cost_high", UNIT),
        "error_y": _bars([record], "measured", "low", "high"),
        "hovertext": [f"{titles.method(record)}, {name}\n{said(record)}"],
        "hovertemplate": _HOVER,
        "marker": {"size": 10},
    }


def _entropies(records: Sequence[Record], titles: Titles) -> list[Chart]:
    charts = []
    for key in dict.fromkeys(record["benchmark"] for record in records):
        own = [one for one in records if one["benchmark"] == key]
        lines = dict.fromkeys((one["measure"], one["seeds"]) for one in own)
        traces = [_entropy([one for one in own if (one["measure"], one["seeds"]) == line], *line) for line in lines]
        layout = {
            "xaxis": {"title": {"text": "update"}},
            "yaxis": {"title": {"text": "entropy of a decision (nats)"}, "rangemode": "tozero"},
        }
        charts.append(Chart(f"Entropy of the router's decisions in training, {titles.benchmarks[key]}", traces, layout))
    return charts


def _entropy(records: Sequence[Record], measure: str, seed: str) -> dict[str, Any]:
    color = f"var(--series-{list(_ENTROPIES).index(measure) + 1})"
    return {
        "name": f"{_ENTROPIES[measure]}, seed {seed}",
        "legendgroup": measure,
        "mode": "lines+markers",
        "x": [int(one["update"]) for one in records],
        "y": [float(one["value"]) for one in records],
        "line": {"color": color},
        "marker": {"color": color, "size": 4},
    }

"""Which conclusions of a simulated run hang on an assumption: each end of the range of its strongest parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from analysis import notes
from analysis.columns import daggers, entries, interval, say
from analysis.frames import IDENTITY, KEY, Results, with_costs
from analysis.paired_tests import ENDS, compare
from analysis.provenance import provenance
from analysis.results import read_all
from analysis.sensitivity import Conclusion, Scenario, conclusions, plan
from analysis.source import Source
from analysis.table import DAGGER, Entry, Table, shown, signed
from harness.errors import UserError

FLIP = "‡"
_SIDES = ("first", "second")
_COLUMNS = [
    *("preset", "parameter", "value", "benchmark", "measure"),
    *(f"{side}_{name}" for side in _SIDES for name in KEY[:2]),
    *("published", "measured", "low", "high", "n", "p", "decision", "stated_decision", "flipped", "calibrated"),
    *(f"{side}_{name}" for side in _SIDES for name in IDENTITY),
]


def build(source: Source) -> Table:
    """A row a scenario, a column a conclusion; raises UserError where the preset has no scenarios."""
    preset = source.run
    scenarios, watched = plan(preset), conclusions(preset)
    if not scenarios:
        raise UserError(
            f"preset {preset.name} has no scenarios to compare: config/sensitivity.yaml needs simulated backbones as "
            "stated, and a benchmark and backbones that it names; choose another preset"
        )
    runs = [Results(read_all(scenario.folders)) for scenario in scenarios]
    base = runs[0]
    frame = _frame(scenarios, runs, watched)
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for one, (_, own) in zip(watched, frame.groupby("place"), strict=True):
        title = f"{base.benchmarks[one.benchmark]}, {one.measure}"
        groups.setdefault((title, f"n = {own['n'].iloc[0]}"), {})[one.title] = _column(one, own)
    rows = [("paper", "in the paper", ""), ("", "as stated", "")]
    rows += [(one.parameter, f"{one.parameter} ({one.stated:g})", f"{one.value:g}") for one in scenarios[1:]]
    return Table(
        label="simulator-sensitivity",
        caption=(
            "Which conclusions flip when one assumed parameter of the simulator moves to an end of its range."
            f"{notes.settings(base)}"
        ),
        simulated=True,
        shown=shown(rows, ("Parameter", "Value"), groups),
        notes=tuple(_legend(base, frame)),
        provenance=provenance([cell for run in runs for cell in run.cells]),
        frame=frame[_COLUMNS],
    )


def _frame(scenarios: Sequence[Scenario], runs: Sequence[Results], watched: Sequence[Conclusion]) -> pd.DataFrame:
    sides = {side: [one.keys[at] for one in watched] for at, side in enumerate(_SIDES)}
    printed = with_costs(runs[0].frame, runs[0])
    first, second = (printed.loc[keys].reset_index() for keys in sides.values())
    base = pd.DataFrame([{"benchmark": one.benchmark, "measure": one.measure} for one in watched])
    base["title"] = [f"{one.title} ({runs[0].benchmarks[one.benchmark]}, {one.measure})" for one in watched]
    is_accuracy = base["measure"] == "accuracy"
    ratio = first["published_cost_per_query"] / second["published_cost_per_query"]
    base["published"] = ((first["published"] - second["published"]) / 100).where(is_accuracy, ratio)
    parts = []
    for scenario, run in zip(scenarios, runs, strict=True):
        found = pd.DataFrame([compare(*(run.trainings[key] for key in one.keys)) for one in watched])
        for name, end in zip(("measured", "low", "high"), ENDS, strict=True):
            found[name] = (found[f"difference{end}"] / 100).where(is_accuracy, found[f"cost_ratio{end}"])
        of_each = [run.measured.loc[keys].reset_index().add_prefix(f"{side}_") for side, keys in sides.items()]
        part = pd.concat([base, found[["measured", "low", "high", "n", "p"]], *of_each], axis=1)
        value = scenario.value if scenario.parameter else float("nan")
        parts.append(part.assign(preset=scenario.preset, parameter=scenario.parameter, value=value))
    frame = pd.concat(parts).rename_axis("place").reset_index()
    frame["calibrated"] = frame[[f"{side}_calibrated" for side in _SIDES]].any(axis=1)
    # Above zero where a value speaks for the conclusion.
    values = frame[["measured", "low", "high"]]
    margins = values.where(frame["measure"] == "accuracy", 1 - values)
    frame["decision"] = np.select([margins.min(axis=1) > 0, margins.max(axis=1) < 0], ["holds", "fails"], "open")
    frame["stated_decision"] = frame.groupby("place")["decision"].transform("first")
    stated = margins["measured"].groupby(frame["place"]).transform("first")
    return frame.assign(flipped=margins["measured"] * stated < 0)


def _column(conclusion: Conclusion, own: pd.DataFrame) -> list[Entry]:
    if conclusion.measure == "accuracy":
        text = [say(100 * own[name], signed) for name in ("published", "measured")]
        below = interval(100 * own["low"], 100 * own["high"], lambda points: signed(points, 1), ", ")
    else:
        text = [say(own[name], "×{:.2f}") for name in ("published", "measured")]
        below = interval(own["low"], own["high"], "{:.2f}")
    # A decision is given as stated, and where it is another one.
    told = own["decision"].where((own["decision"] != own["stated_decision"]) | (own["parameter"] == ""), "")
    signs = daggers(own) + own["flipped"].map({True: FLIP, False: ""})
    return [*entries(text[0].head(1)), *entries(text[1], sign=signs, beside=told, below=below)]


def _legend(base: Results, frame: pd.DataFrame) -> Iterator[str]:
    yield (
        "Each row is a scenario: one parameter of config/simulator.yaml as given (in brackets as stated), the "
        "others as stated, abilities and lengths calibrated again, methods trained again."
    )
    yield (
        "Accuracy: first minus second in points. Cost: first over second, by question. Below: 95 % interval over "
        "questions. The conclusion is that the first is more accurate, or cheaper."
    )
    yield (
        f"{FLIP}: the point estimate is on the other side than with the simulator as stated. holds, open, fails: "
        "whether the whole interval is on the side of the conclusion, on neither, on the other; given where it differs "
        "from the simulator as stated."
    )
    flipped = [f"{title} at {_listed(of)}" for (_, title), of in frame[frame["flipped"]].groupby(["place", "title"])]
    yield f"Flipped ({FLIP}): {'; '.join(flipped) or 'none'}."
    yield f"Decided otherwise: {'; '.join(_decided(frame)) or 'none'}."
    yield (
        f"One training seed ({base.cells[0].run.seed}) in each scenario: the spread between trainings is in no "
        "interval and can alone move a learned row to the other side. With this many comparisons some change by chance."
    )
    if frame.loc[frame["parameter"] == "", "calibrated"].any():
        yield (
            f"{DAGGER}: one side is fitted to its published accuracy and cost in every scenario, so only the other "
            "is a result of it."
        )


def _decided(frame: pd.DataFrame) -> Iterator[str]:
    other = frame[frame["decision"] != frame["stated_decision"]]
    for (_, title, stated), of in other.groupby(["place", "title", "stated_decision"]):
        scenarios = of.groupby("decision").apply(_listed)
        found = [f"{one} at {scenarios[one]}" for one in ("holds", "open", "fails") if one in scenarios]
        yield f"{title} {stated} as stated, {' and '.join(found)}"


def _listed(scenarios: pd.DataFrame) -> str:
    return ", ".join(f"{row.parameter} = {row.value:g}" for row in scenarios.itertuples())

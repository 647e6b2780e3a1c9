"""What a second step is worth that reads a failed program and its outcome, from an enumeration of failed first steps.

``gmr enumerate --only failed`` asks second steps where the program of the first fails the examples of its question. The
comparisons are paired over these questions; the policies answer all questions.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.beyond.tree import accuracy_of, difference, read_tree, table_of
from analysis.exhibit import format_cost
from analysis.frames import UNIT, Results, percent
from analysis.paired_tests import ENDS, holm, p_value
from analysis.statistics import accuracy
from analysis.table import Groups, Table, entries, points

_SECOND = ["backbone", "step2_backbone", "step2_reads", "step2_temperature", "tool_output"]
_STEPS = ["step1_passes", "step1_correct", "step2_correct", "cost_steps"]
_TEXT = ["section", "title", "on"]
_READING = "If it fails, a second, reading step"
_NUMBERS = [
    *("n", *(f"{name}{end}" for name in ("accuracy", "difference") for end in ENDS)),
    *("first_alone", "second_alone", "p", "p_holm", "training", "cost"),
]


class Policy(NamedTuple):
    """Verdicts and costs of a policy by question."""

    title: str
    on: str
    right: pd.Series
    cost: pd.Series


def build(results: Results) -> Table:
    """Return one row per comparison and policy. Raises UserError if no enumeration fits the cells."""
    with read_tree(results, *_SECOND, *_STEPS) as (nodes, digest):
        tests = results.cells[0].items["item_id"]
    policies = [*_policies(nodes)]
    for key, cells in results.cells_by_row.items():
        items, row = cells[0].items.set_index("item_id"), results.rows.loc[key[:2]]
        right, cost = items["correct"].astype(float), items["cost_total"]
        policies.append(Policy(row["method_title"], row["backbone_title"], right, cost))
    rows = pd.DataFrame([*_comparisons(nodes, tests), *_measured(policies, tests)])
    rows["p_holm"] = holm(rows["p"].where(rows["section"] == "primary"))
    frame = rows.reindex(columns=[*_TEXT, *_NUMBERS])
    return table_of(results, frame, _groups(frame), digest)


def _step_2(nodes: pd.DataFrame, first: str, second: str, kind: str) -> pd.DataFrame:
    """Return the second steps of a kind after failed first steps, or after passed ones, indexed by question."""
    rows = nodes[(nodes["backbone"] == first) & (nodes["step2_backbone"] == second)]
    reads, failed = rows["step2_reads"].eq(True), rows["step1_passes"].eq(False)
    is_drawn, is_blind = rows["step2_temperature"] > 0, rows["tool_output"] == "none"
    chosen = {
        "reading": failed & reads & ~is_blind,
        "without outcome": failed & reads & is_blind,
        "not reading": failed & ~reads & ~is_drawn,
        "draw": failed & is_drawn,
        "after passing": ~failed & reads & ~is_blind,
    }[kind]
    return rows[chosen].drop_duplicates("item_id").set_index("item_id")


def _comparisons(nodes: pd.DataFrame, tests: pd.Series) -> Iterator[dict[str, Any]]:
    """Yield the paired comparisons of second steps on test questions, all of the second step's own program."""
    pairs = nodes[["backbone", "step2_backbone"]].dropna().drop_duplicates().itertuples(index=False, name=None)
    kinds = partial(_step_2, nodes)
    for first, second in pairs:
        on, other = f"{first}, {second}", "draw" if first == second else "not reading"
        reading = kinds(first, second, "reading")["step2_correct"]
        title = "another sample" if first == second else other
        yield _paired("primary", f"Reading − {title}", on, reading, kinds(first, second, other)["step2_correct"], tests)
        blind = kinds(first, second, "without outcome")["step2_correct"]
        yield _paired("secondary", "Reading with − without the outcome", on, reading, blind, tests)
        passed = kinds(first, second, "after passing")
        if len(passed):
            harmed = passed["step2_correct"], passed["step1_correct"]
            yield _paired("secondary", "Reading what passed − leaving it", on, *harmed, tests)


def _paired(section: str, title: str, on: str, first: pd.Series, second: pd.Series, tests: pd.Series) -> dict[str, Any]:
    """Return the difference first - second over the test questions that both have."""
    shared = [item for item in tests if item in first.index and item in second.index]
    sides = [side[shared].to_numpy(dtype=float) for side in (first, second)]
    alone = {"first_alone": int((sides[0] > sides[1]).sum()), "second_alone": int((sides[1] > sides[0]).sum())}
    about = {"section": section, "title": title, "on": on, "n": len(shared), **alone}
    return {**about, **(difference(*(side[np.newaxis] for side in sides)) if shared else {})}


def _policies(nodes: pd.DataFrame) -> Iterator[Policy]:
    """Yield the policies over first steps."""
    rows = nodes[nodes["step2_backbone"].isna()].drop_duplicates(["item_id", "backbone"]).set_index("item_id")
    firsts = dict([*rows.groupby("backbone", sort=False)])
    for first, opened in firsts.items():
        yield Policy("First step", first, opened["step1_correct"].astype(float), opened["cost_steps"])
        failed = opened["step1_passes"].eq(False)
        for other, following in firsts.items():
            if other != first:
                right = opened["step1_correct"].mask(failed, following["step1_correct"]).astype(float)
                cost = opened["cost_steps"] + following["cost_steps"].where(failed, 0.0)
                yield Policy("If it fails, the other first step", f"{first}, {other}", right, cost)
        for second in nodes["step2_backbone"].dropna().unique():
            reading = _step_2(nodes, first, second, "reading")
            if len(reading):
                right = opened["step1_correct"].astype(float)
                right.update(reading["step2_correct"].astype(float))
                cost = opened["cost_steps"].copy()
                cost.update(reading["cost_steps"])
                yield Policy(_READING, f"{first}, {second}", right, cost)


def _measured(policies: Sequence[Policy], tests: pd.Series) -> Iterator[dict[str, Any]]:
    """Yield the policies, with the difference of each reading one from the best other on these test questions."""
    best = max((policy.right[tests] for policy in policies if policy.title != _READING), key=pd.Series.mean)
    for title, on, right, cost in policies:
        shares = accuracy([right[tests].tolist()])[:3]
        numbers = {f"accuracy{end}": percent(share) for end, share in zip(ENDS, shares, strict=True)}
        if len(training := right.index.difference(tests)):
            numbers["training"] = percent(right[training].mean())
        if title == _READING:
            numbers |= difference(right[tests].to_numpy()[np.newaxis], best.to_numpy()[np.newaxis])
        about = {"section": "policies", "title": title, "on": on, "n": len(tests)}
        yield {**about, **numbers, "cost": cost[tests].mean()}


def _groups(frame: pd.DataFrame) -> Groups:
    return {
        ("Questions", ""): {"n": entries(frame["n"], "{:.0f}")},
        ("Right", ""): {
            "accuracy (%)": accuracy_of(frame),
            "training (%)": entries(frame["training"], "{:.1f}"),
            "all calls (1e-4)": entries(UNIT * frame["cost"], format_cost),
        },
        ("Difference", ""): {
            "points": points(frame, "difference"),
            "won": entries(frame["first_alone"], "{:.0f}"),
            "lost": entries(frame["second_alone"], "{:.0f}"),
            "p": entries(frame["p"], p_value),
            "p (Holm)": entries(frame["p_holm"], p_value),
        },
    }

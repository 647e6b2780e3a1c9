"""The tree of an enumeration: effects of role, backbone and memory, and the value of learned choices among its paths.

A path is a role, a backbone, and whether the step is stored. ``nodes.parquet`` has the verdict of every path on every
question (gmr/enumeration.py), so the oracle and every constant choice are known without a further call.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd

from analysis import bounds
from analysis.exhibit import Entry, format_cost, signed
from analysis.finished_cells import identity, read_table, short
from analysis.frames import UNIT, Results, percent
from analysis.paired_tests import ENDS, p_value
from analysis.statistics import Array, Jackknife, accuracy
from analysis.table import Groups, Table, entries, interval_of, points, results_table, row_labels
from harness.errors import UserError
from harness.llm.archive import data_of
from harness.runner import layout
from harness.runner.results import TEST_SPLIT, check_tables

FIXED = ("fixed_step", layout.POOL)
_PATH = ["backbone", "role", "stored"]
_MEASURES = ("accuracy", "difference", "above_random", "gained")
_NUMBERS = [f"{name}{end}" for name in _MEASURES for end in ENDS] + ["cost_all_calls", "p", "p_random", "regret"]


class Baselines(NamedTuple):
    """Verdicts that every row is compared with, shape (seeds, n)."""

    fixed: Array | None  # best role and backbone on the training questions; None if not run
    random: Array  # mean verdicts of a random role and backbone
    oracle: Array


def build(results: Results) -> Table:
    """Return one row per path, effect, bound and method. Raises UserError if no enumeration fits the cells."""
    benchmark, _ = results.only_benchmark()
    nodes, digest = _nodes(results)
    frame = pd.DataFrame([*_rows(results, nodes, benchmark)])
    # No p for paths, which are many, and bounds, which are chosen on these questions: it would mislead.
    frame.loc[frame["section"].isin(["bounds", "paths"]), ["p", "p_random"]] = np.nan
    frame = frame.reindex(columns=list(dict.fromkeys(["section", "title", "on", *_NUMBERS, *frame.columns])))
    return table_of(results, frame, _groups(frame), digest)


def table_of(results: Results, frame: pd.DataFrame, groups: Groups, digest: str) -> Table:
    """Build a table with a row for each ``section``, ``title`` and ``on`` of a frame from an enumeration."""
    [(benchmark, title)] = results.benchmarks.items()
    frame = frame.assign(on=frame["on"].fillna("").replace(results.published.backbones))
    caption = f"{results.artefact.caption} {title}, {results.questions(benchmark)}."
    rows = row_labels(frame, "section", "title", "on", heads=("Row", "LLM"))
    table = results_table(results, rows, groups, frame, caption=caption)
    return replace(table, provenance={**table.provenance, "enumeration": short(digest)})


def _nodes(results: Results) -> tuple[pd.DataFrame, str]:
    """Load ``correct`` and ``cost`` (of all calls) of each path by test question, and the digest of the table."""
    with read_tree(results, *_PATH, "correct", "cost_total") as (table, digest):
        table = table[table["split"] == TEST_SPLIT].rename(columns={"cost_total": "cost"})
        paths = pd.MultiIndex.from_frame(table[_PATH].drop_duplicates())
        wide = table.pivot(index="item_id", columns=_PATH, values=["correct", "cost"]).astype(float)
        nodes = pd.concat({name: wide[name][paths] for name in ("correct", "cost")}, axis="columns")
        nodes = nodes.reindex(results.cells[0].items["item_id"])
        if nodes.isna().any(axis=None):
            raise ValueError("a path has no verdict on some question")
    return nodes, digest


@contextmanager
def read_tree(results: Results, *names: str) -> Iterator[tuple[pd.DataFrame, str]]:
    """Read columns of the enumeration of the preset, else of a recording, and its digest.

    Raises UserError if there is none, if it lacks test questions of the run or has other rules, or if it is damaged,
    as an error in the block shows, too.
    """
    run, (benchmark, _) = results.run, results.only_benchmark()
    trees = [layout.tree(run.name, benchmark), *(each.results / "tree" / benchmark for each in run.recorded)]
    cure = f"make it with `gmr enumerate --preset {run.name} --benchmark {benchmark}`, which asks only what no log has"
    folder = next((tree for tree in trees if (tree / "run.json").is_file()), None)
    if folder is None:
        raise UserError(f"neither preset {run.name} nor a recording of it has an enumeration of {benchmark}", cure)
    with data_of(folder):
        made = orjson.loads((folder / "run.json").read_bytes())
        digest: str = made["tables"]["nodes.parquet"]
        check_tables(folder, {"nodes.parquet": digest})
        nodes = read_table(folder / "nodes.parquet", ["item_id", "split", *names])
        cell, answered = results.cells[0], nodes.loc[nodes["split"] == TEST_SPLIT, "item_id"]
        if made.get("simulated", False) != cell.run.simulated:
            raise UserError(f"{folder} and the cells of this run are not both simulated or both real", cure)
        if made["rule_version"] != cell.run.rule_version or not cell.items["item_id"].isin(answered).all():
            raise UserError(
                f"{folder} lacks verdicts of the test questions of this run, or has them by other rules", cure
            )
        yield nodes, digest


def _rows(results: Results, nodes: pd.DataFrame, benchmark: str) -> Iterator[dict[str, Any]]:
    """Yield the methods, the bounds of the tree, the effects, and the paths."""
    correct, cost = nodes["correct"], nodes["cost"]
    names = {path: f"{path[1]} of {path[0]}{'' if path[2] else ', nothing stored'}" for path in correct}
    of_tree = bounds.of_options({name: nodes.xs(path, axis="columns", level=_PATH) for path, name in names.items()})
    cells = {key[:2]: row for key, row in results.cells_by_row.items()}
    verdicts = {key: np.array([cell.items["correct"] for cell in row], float) for key, row in cells.items()}
    oracle = of_tree.rows[bounds.ORACLE].correct[np.newaxis]
    random = correct.xs(True, axis="columns", level="stored").to_numpy().mean(axis=1)[np.newaxis]
    baselines = Baselines(verdicts.get(FIXED), random, oracle)
    for key in results.ran.index:
        title, on = results.rows.loc[key, ["method_title", "backbone_title"]]
        if key == FIXED:
            choice = cells[key][0].rows("decisions", ["choice"])["choice"].iloc[0]
            path = next((path for path, name in names.items() if name == choice), None)
            if path is None or (correct[path].to_numpy() != verdicts[key][0]).any():
                problem = f"the enumeration has other verdicts on {choice} than the cell of {FIXED[0]}"
                raise UserError(problem, "make both with the same settings (`gmr enumerate`)")
            title += f" ({choice})"
        about = {"section": "methods", "title": title, "on": on, "method": key[0]}
        paid = results.measured.loc[(*key, benchmark), "cost_per_query_all_calls"]
        yield {**about, **_measures(verdicts[key], paid, baselines), **identity([cell.run for cell in cells[key]])}
    titles = {bounds.BEST: f"Best path of these questions: {of_tree.best}", bounds.ORACLE: "Oracle of the tree"}
    for name, title in titles.items():
        right, paid = of_tree.rows[name].correct[np.newaxis], of_tree.rows[name].cost.mean()
        yield {"section": "bounds", "title": title, **_measures(right, paid, baselines)}
    yield from _effects(correct)
    # With nothing stored, the closing call and so the verdict is the same for all roles.
    alike: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    for path in (path for path in correct if path[2]):
        alike.setdefault(("random role", path[0]), []).append(path)
    for path in sorted(correct, key=lambda path: not path[2]):
        alike.setdefault((path[1] if path[2] else "nothing stored", path[0]), []).append(path)
    for (title, on), paths in alike.items():
        right, paid = correct[paths].to_numpy().mean(axis=1)[np.newaxis], cost[paths].to_numpy().mean()
        yield {"section": "paths", "title": title, "on": on, **_measures(right, paid, baselines)}


def _measures(verdicts: Array, cost: float, baselines: Baselines) -> dict[str, float]:
    """Return the numbers of a row, given its verdicts, shape (seeds, n), and its cost of a question."""
    mean, low, high, *_ = accuracy(verdicts.tolist())
    numbers = {f"accuracy{end}": percent(value) for end, value in zip(ENDS, (mean, low, high), strict=True)}
    numbers |= {"cost_all_calls": cost, "regret": percent(float(baselines.oracle.mean()) - mean)}
    for name, p, other in (("difference", "p", baselines.fixed), ("above_random", "p_random", baselines.random)):
        if other is not None and other is not verdicts:
            numbers |= difference(verdicts, other, name, p)
    return numbers | _gained(verdicts, baselines.random, baselines.oracle)


def difference(first: Array, second: Array, name: str = "difference", p: str = "p") -> dict[str, float]:
    """Return the difference first - second in points, with interval and p over questions and seeds."""
    jackknife = Jackknife({None: first.shape[1]}, {"first": len(first), "second": len(second)})
    points = jackknife.ratio(100 * first, None, None, "first") - jackknife.ratio(100 * second, None, None, "second")
    spread = jackknife.spread(points, are_points=True)
    ends = spread.estimate(-100.0, 100.0)[:3]
    return {**{f"{name}{end}": value for end, value in zip(ENDS, ends, strict=True)}, p: spread.p}


def _gained(row: Array, random: Array, oracle: Array) -> dict[str, float]:
    """Return the share of the oracle's lead over random that a row gains; NaN if there is no lead."""
    jackknife = Jackknife({None: row.shape[1]}, {"row": len(row), "random": len(random)})
    sides = {"row": row, "random": random, "oracle": oracle}
    of_row, of_random, of_oracle = (jackknife.ratio(side, None, None, name) for name, side in sides.items())
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = jackknife.spread((of_row - of_random) / (of_oracle - of_random)).estimate()[:3]
    return {f"gained{end}": value for end, value in zip(ENDS, ends, strict=True)}


def _effects(correct: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the effects of role, of storing the step, and of the backbone, on the same questions."""
    from statsmodels.stats.contingency_tables import cochrans_q

    with_step, without = (correct.xs(stored, axis="columns", level="stored") for stored in (True, False))
    backbones = list(dict.fromkeys(with_step.columns.get_level_values("backbone")))

    def effect(title: str, on: str, first: pd.Series, second: pd.Series, **p: float) -> dict[str, Any]:
        sides = (side.to_numpy()[np.newaxis] for side in (first, second))
        return {"section": "effects", "title": title, "on": on, **difference(*sides), **p}

    for key in backbones:
        roles = with_step[key]
        best, worst = roles.mean().idxmax(), roles.mean().idxmin()
        with np.errstate(invalid="ignore"):
            p = float(cochrans_q(roles.to_numpy()).pvalue)
        yield effect(f"Role: {best} − {worst}", key, roles[best], roles[worst], p=p)
    for key in backbones:
        yield effect("Step stored − nothing stored", key, with_step[key].mean(axis=1), without[key].mean(axis=1))
    for small, large in pairwise(backbones):
        of_large, of_small = (with_step[key].mean(axis=1) for key in (large, small))
        yield effect(f"LLM: {large} − {small}", "", of_large, of_small)


def accuracy_of(frame: pd.DataFrame) -> list[Entry]:
    """Return the column of accuracies with their intervals."""
    return entries(frame["accuracy"], "{:.2f}", below=interval_of(frame, "accuracy", "{:.1f}"))


def _groups(frame: pd.DataFrame) -> Groups:
    return {
        ("Answers", ""): {
            "accuracy (%)": accuracy_of(frame),
            "all calls (1e-4)": entries(UNIT * frame["cost_all_calls"], format_cost),
        },
        ("Difference", ""): {"points": points(frame, "difference"), "p": entries(frame["p"], p_value)},
        ("Above random", ""): {"points": points(frame, "above_random"), "p": entries(frame["p_random"], p_value)},
        ("Oracle of the tree", ""): {
            "gained": entries(frame["gained"], signed, below=interval_of(frame, "gained", signed, " to ")),
            "regret (points)": entries(frame["regret"], signed),
        },
    }

"""Legend and footnotes of the main table: what a reader must know before comparing two of its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from analysis import tables
from analysis.grid import Grid, Line
from analysis.learned import CHOICES, ENTROPY, budget, choices, is_learner
from analysis.measures import Key, Measurement
from analysis.provenance import answered
from analysis.results import Cell
from harness.benchmarks.items import Status

# A caption names so many rows; of more it says how many cells they are.
_FEW = 3
WITHOUT_VERDICT = {
    Status.UNPARSABLE: "no answer found",
    Status.EMPTY: "empty answer",
    Status.TRUNCATED: "reply cut off",
    Status.CALL_FAILED: "call failed",
    Status.SANDBOX_ERROR: "sandbox failed",
}


def notes(grid: Grid) -> tuple[str, ...]:
    """Every note that applies, legend first."""
    return (
        *_legend(grid),
        *protocol(grid),
        *seeds(grid),
        *_without_average(grid),
        *_without_verdict(grid),
        *_math_verify(grid),
        *_learned(grid),
    )


def conditions(grid: Grid) -> str:
    """What a run changed about its questions or replies, and backbones that were not the same all along.

    One sentence for the caption, empty if there is nothing to say.
    """
    found = [*_changes(grid), *_revisions(grid)]
    return f" Conditions of this run: {'; '.join(found)}." if found else ""


def _changes(grid: Grid) -> Iterator[str]:
    for note in sorted({note for cell in grid.cells for note in cell.run.notes}):
        yield note + _scope(grid, [cell for cell in grid.cells if note in cell.run.notes])


def _revisions(grid: Grid) -> Iterator[str]:
    """Backbones under whose name not every cell was answered by the same weights."""
    for key in sorted({key for cell in grid.cells for key in cell.run.backbones}):
        found: dict[str, list[Cell]] = {}
        for cell in grid.cells:
            if key in cell.run.backbones:
                found.setdefault(answered(cell.run.backbones[key]), []).append(cell)
        if len(found) > 1:
            scopes = [f"{name}{_scope(grid, found[name])}" for name in sorted(found)]
            yield f"{key} is not the same in all rows: {', '.join(scopes)}"


def _scope(grid: Grid, cells: Sequence[Cell]) -> str:
    """Which rows some cells belong to, in brackets; empty where they are all."""
    if len(cells) == len(grid.cells):
        return ""
    rows = _rows(grid, [Key(cell.run.method, cell.run.backbone, cell.run.benchmark) for cell in cells])
    if len(rows) > _FEW:
        return f" ({len(cells)} of {len(grid.cells)} cells)"
    return f" (only {', '.join(rows)})"


def _rows(grid: Grid, places: Iterable[Key]) -> list[str]:
    """The rows that some places are in, each with those of its benchmarks that are meant unless they are all."""
    meant, found = set(places), []
    for line in grid.lines:
        run = [key for key in grid.benchmarks if grid.at(line, key)]
        on = [grid.benchmarks[key] for key in run if Key(line.method, line.backbone, key) in meant]
        if on:
            found.append(line.name if len(on) == len(run) else f"{line.name} on {' and '.join(on)}")
    return found


def first_seeds(grid: Grid) -> str:
    """The seeds whose verdicts the McNemar test is about: seed 0, or the lowest of a row that was run without it."""
    found: dict[int, list[Key]] = {}
    for key, one in grid.measurements.items():
        found.setdefault(one.seeds[0], []).append(key)
    if len(found) == 1:
        (seed,) = found
        return f"seed {seed}{', the lowest that was run' if seed else ''}"
    others = [f"seed {seed} of {_few(_rows(grid, found[seed]))}" for seed in sorted(set(found) - {0})]
    return f"seed 0, or the lowest where that was not run ({'; '.join(others)})"


def _few(rows: Sequence[str]) -> str:
    return ", ".join(rows) if len(rows) <= _FEW else f"{len(rows)} rows"


def _legend(grid: Grid) -> Iterator[str]:
    yield (
        "Publ.: printed in the paper. Meas.: this run on n items, beside it measured minus published in points, "
        f"below it the 95 % interval ({_interval(grid)})."
    )
    yield (
        "Bold is the best value of a column and underlined the second best, published and measured apart; "
        "equal values share a mark."
    )
    yield f"Mul.: several agents; Rout.: routes over the pool of models ({tables.YES} yes, {tables.NO} no)."
    places = [grid.at(line, benchmark) for line in grid.lines for benchmark in grid.benchmarks]
    if any(place is None for place in places):
        yield f"{tables.NOT_RUN}: not run."
    if any(place is not None and place.calibrated for place in places):
        yield (
            f"{tables.DAGGER}: the simulation was fitted to the paper's value over all test questions; agreement is no "
            "finding, so no difference is shown."
        )
    if any(line.published is None for line in grid.lines) or set(grid.benchmarks) - set(grid.published.benchmarks):
        yield "A blank published column: the paper prints no such value."


def _interval(grid: Grid) -> str:
    several = any(len(measurement.seeds) > 1 for measurement in grid.measurements.values())
    means = "; of a mean over several seeds, bootstrap over items and seeds, with seed 0 alone beside it"
    return f"Wilson{means if several else ''}{'; averages: normal' if grid.has_average else ''}"


def seeds(grid: Grid) -> Iterator[str]:
    """Rows that were trained with other seeds than the rest.

    The seeds that most measurements of learned methods have count as the usual ones, of equally frequent ones the more
    numerous.
    """
    times = Counter(one.seeds for one in grid.measurements.values() if one.learned)
    if len(times) > 1:
        usual = max(times, key=lambda found: (times[found], len(found), found))
        others = [text for line in grid.lines if (text := _other_seeds(grid, line, usual))]
        yield f"Seeds of the learned rows: {_listed(usual)}, except {'; '.join(others)}."


def _without_average(grid: Grid) -> Iterator[str]:
    uneven = [line.name for line in grid.lines if not grid.has_equal_seeds(line)] if grid.has_average else []
    if uneven:
        yield f"No average over benchmarks with different seeds: {', '.join(uneven)}."


def _other_seeds(grid: Grid, line: Line, usual: tuple[int, ...]) -> str:
    """What a row has instead, by benchmark; empty for the usual row, and for one that does not learn."""
    found: dict[tuple[int, ...], list[str]] = {}
    for key, title in grid.benchmarks.items():
        measured = grid.at(line, key)
        if measured is not None and measured.learned and measured.seeds != usual:
            found.setdefault(measured.seeds, []).append(title)
    parts = [
        _listed(own) + (f" on {', '.join(on)}" if len(on) < len(grid.benchmarks) else "") for own, on in found.items()
    ]
    return f"{line.name}: {' and '.join(parts)}" if parts else ""


def _listed(found: tuple[int, ...]) -> str:
    return "/".join(map(str, found))


def protocol(grid: Grid) -> Iterator[str]:
    """The question format moves accuracies by many points, so a table must name it."""
    asserts = "; MBPP questions show one assert" if "mbpp" in grid.benchmarks else ""
    yield f"Prompts: zero-shot; temperature 0 unless a method's released code samples{asserts}."
    other = [
        f"{title} for {grid.published.benchmarks[key]}"
        for key, title in grid.benchmarks.items()
        if key in grid.published.benchmarks and title != grid.published.benchmarks[key]
    ]
    if other:
        yield f"Measured on other questions than the paper's: {', '.join(other)}."


def _without_verdict(grid: Grid) -> Iterator[str]:
    """The worst row of each benchmark is enough for a footnote; the tidy file has every row."""
    found = [
        f"{title}: {', '.join(shares)}" for key, title in grid.benchmarks.items() if (shares := _shares(grid, key))
    ]
    if found:
        yield (
            "Answers without a full verdict, at most in any row (each is in the CSV and in the table errors): "
            f"{'; '.join(found)}."
        )


def _shares(grid: Grid, benchmark: str) -> list[str]:
    column = _column(grid, benchmark)
    worst = {status: max(measured.shares[status] for measured in column) for status in WITHOUT_VERDICT}
    return [f"{WITHOUT_VERDICT[status]} {100 * share:.1f} %" for status, share in worst.items() if share > 0]


def _math_verify(grid: Grid) -> Iterator[str]:
    for key, title in grid.benchmarks.items():
        changes = [
            tables.percent(measured.math_verify.mean) - tables.percent(measured.accuracy.mean)
            for measured in _column(grid, key)
            if measured.math_verify is not None
        ]
        if changes:
            low, high = tables.signed(min(changes)), tables.signed(max(changes))
            moved = f"by {low} points" if low == high else f"between {low} and {high} points"
            yield f"{title} graded by Math-Verify instead: {moved} against the measured values above."


def _learned(grid: Grid) -> Iterator[str]:
    """What was learned behind each row that learns, for a training is part of what a row is."""
    measured = {line.name: [grid.at(line, key) for key in grid.benchmarks] for line in grid.lines}
    found = {name: [one for one in row if one and is_learner(one)] for name, row in measured.items()}
    rows = [f"{name}: {_of_training(row)}." for name, row in found.items() if row]
    if rows:
        yield (
            "What the learned rows learned, as ranges over the benchmarks; the table training_budget has each. "
            f"{ENTROPY} Trajectories: graded attempts of a training. Cost: of all its calls, in the paper's unit."
        )
        yield from rows


def _of_training(row: Sequence[Measurement]) -> str:
    budgets, policies = [budget(one) for one in row], [choices(one) for one in row]
    if not any(one.trajectories for one in budgets):
        return "left as initialised"
    cost = _range([one.cost for one in budgets], 3)
    used = f"{_range([one.trajectories for one in budgets])} trajectories, cost {cost}"
    by_name = {name: [policy[name] for policy in policies if name in policy] for name in CHOICES}
    made = {name: found for name, found in by_name.items() if found}
    if not made:
        return f"a search, which leaves no policy; {used}"
    drawn = {name: [one.entropy for one in found if one.entropy is not None] for name, found in made.items()}
    entropies = ", ".join(f"{name} {_range(values)} %" for name, values in drawn.items() if values)
    most, found = next(iter(made.items()))
    share = f"most frequent {most} {_range([one.share for one in found])} %"
    return "; ".join(part for part in (entropies and f"entropy of {entropies}", share, used) if part)


def _range(values: Sequence[float], digits: int = 0) -> str:
    ends = dict.fromkeys(f"{end:.{digits}f}" for end in (min(values), max(values)))
    return "–".join(ends)


def _column(grid: Grid, benchmark: str) -> list[Measurement]:
    return [measured for key, measured in grid.measurements.items() if key.benchmark == benchmark]

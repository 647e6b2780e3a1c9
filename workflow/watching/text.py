"""A run at one moment, for the eyes of a person, and for scripts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.config import Preset
from workflow.targets import ALL
from workflow.watching.artefacts import Made
from workflow.watching.cells import Seen, State, last_lines
from workflow.watching.line import duration
from workflow.watching.standing import Standing

_WIDTH = 110
_UNFINISHED = {State.RUNNING: "r", State.FAILED: "f", State.STOPPED: "s"}
# Of what Snakemake says, where no cell says why a run has ended.
_LAST_WORDS = 12


def lines(
    preset: Preset, targets: Sequence[str], standing: Standing, beyond: Standing, artefacts: Mapping[str, Made]
) -> list[str]:
    """What ``gmr status`` prints.

    Args:
        preset: The run.
        targets: What was asked about.
        standing: The cells behind that.
        beyond: Other cells of the preset that have begun.
        artefacts: Those of the preset.
    """
    again = f"gmr run {' '.join(targets)} --preset {preset.name}"
    return [
        *(["SIMULATED BACKBONES: no model was asked, and the replies are made up."] if preset.simulated else []),
        f"Preset {preset.name}, {', '.join(targets)}: {_counted(standing)}.",
        f"{_spent(standing)} so far{_left(standing)}.",
        *([f"Beyond these: {_counted(beyond)}; {_spent(beyond)}."] if beyond.seen else []),
        "",
        *_table(standing.seen),
        *_section("Running", (_at_work(one) for one in standing.of(State.RUNNING))),
        *_failed(standing),
        *_section("Stopped on the way, kept to go on with", map(_named, standing.of(State.STOPPED))),
        "",
        *(line for made in Made for line in _artefacts(made, artefacts)),
        "",
        "All is finished." if is_finished(targets, standing, artefacts) else f"Next: {again}",
    ]


def as_json(
    preset: Preset, targets: Sequence[str], standing: Standing, beyond: Standing, artefacts: Mapping[str, Made]
) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "preset": preset.name,
        "simulated": preset.simulated,
        "targets": list(targets),
        "finished": is_finished(targets, standing, artefacts),
        "counts": {state.value: standing.counts[state] for state in State},
        "calls": standing.spent.calls,
        "tokens": standing.spent.tokens,
        "cost": standing.spent.cost,
        "left_s": standing.left_s,
        "cells": [_cell(one) for one in standing.seen],
        "beyond": [_cell(one) for one in beyond.seen],
        "artefacts": {name: made.value for name, made in artefacts.items()},
    }


def ending(standing: Standing, output: Path) -> str:
    """Why a run has ended before its end, and what to do.

    Args:
        standing: Its cells.
        output: What Snakemake and its jobs said.
    """
    failed = _failed(standing)
    why = failed if failed else ["", "Snakemake ended; its last words:", *_quoted(last_lines(output, _LAST_WORDS))]
    return "\n".join([*why, "", f"All of it: {output}. Finished calls are kept; the same command goes on."])


def is_finished(targets: Sequence[str], standing: Standing, artefacts: Mapping[str, Made]) -> bool:
    """Whether all cells are, and the artefacts that are asked about have been made since."""
    asked = [name for name in artefacts if ALL in targets or name in targets]
    cells = standing.counts[State.FINISHED] == len(standing.seen)
    return cells and all(artefacts[name] is Made.MADE for name in asked)


def _counted(standing: Standing) -> str:
    counts = standing.counts
    others = "".join(f", {counts[state]} {state}" for state in State if state is not State.FINISHED and counts[state])
    return f"{counts[State.FINISHED]} of {len(standing.seen)} cells finished{others}"


def _spent(standing: Standing) -> str:
    spent = standing.spent
    return f"{spent.calls:,} calls, {spent.tokens:,} tokens, cost {spent.cost:.4f}"


def _left(standing: Standing) -> str:
    return f"; about {duration(standing.left_s)} left" if standing.left_s else ""


def _table(seen: Sequence[Seen]) -> list[str]:
    """Methods by benchmarks: finished cells of all, and letters for those that are neither finished nor missing."""
    methods = dict.fromkeys(one.cell.method for one in seen)
    benchmarks = dict.fromkeys(one.cell.benchmark for one in seen)
    rows = [["", *benchmarks]]
    for method in methods:
        parts = [[one for one in seen if (one.cell.method, one.cell.benchmark) == (method, key)] for key in benchmarks]
        rows.append([method, *map(_entry, parts)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    legend = any(one.state in _UNFINISHED for one in seen)
    said = [", ".join(f"{letter} {state}" for state, letter in _UNFINISHED.items())] if legend else []
    return [_row(row, widths) for row in rows] + said


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (text.ljust(width) for text, width in zip(row, widths, strict=True))
    return "  ".join([first, *rest]).rstrip()


def _entry(seen: Sequence[Seen]) -> str:
    if not seen:
        return "-"
    finished = sum(one.state is State.FINISHED for one in seen)
    counts = ((sum(one.state is state for one in seen), letter) for state, letter in _UNFINISHED.items())
    return f"{finished}/{len(seen)}" + "".join(f" {count}{letter}" for count, letter in counts if count)


def _section(title: str, entries: Iterable[str]) -> list[str]:
    found = list(entries)
    return ["", title, *(f"  {entry}" for entry in found)] if found else []


def _named(one: Seen) -> str:
    return str(one.cell)


def _at_work(one: Seen) -> str:
    """What a cell last said of itself; it begins with its name."""
    return one.said[-1] if one.said and one.said[-1].startswith(str(one.cell)) else f"{one.cell}: begins"


def _failed(standing: Standing) -> list[str]:
    failed = standing.of(State.FAILED)
    entries = [line for one in failed for line in (f"{one.cell} ({one.log})", *_quoted(one.said))]
    return _section("Failed", entries)


def _quoted(said: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in said]


def _artefacts(made: Made, artefacts: Mapping[str, Made]) -> list[str]:
    names = [name for name, state in artefacts.items() if state is made]
    return textwrap.wrap(f"Artefacts {made}: {', '.join(names)}", _WIDTH, break_on_hyphens=False) if names else []


def _cell(one: Seen) -> dict[str, Any]:
    cell = one.cell
    return {
        "method": cell.method,
        "benchmark": cell.benchmark,
        "backbone": cell.backbone,
        "seed": cell.seed,
        "state": one.state.value,
        "folder": str(one.folder),
        "log": str(one.log),
        "said": list(one.said),
    }

"""Two rows side by side, for the eyes of a person, and for scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paper.costs import UNIT
from paper.statistics import Estimate
from workflow.comparing.rows import Compared, Line, Pair

_HEAD = ("", "n", "A %", "B %", "A - B, points", "p", "p Holm", "A alone", "B alone", "cost A/B", "shows from")


def lines(compared: Compared, *, items: bool) -> list[str]:
    """What ``gmr compare`` prints.

    Args:
        compared: The rows.
        items: Whether to list the questions that only one got right.
    """
    warning = ["SIMULATED BACKBONES: no model was asked; this says nothing about models.", ""]
    rows = [_HEAD, *(_row(key, pair) for key, pair in compared.pairs.items())]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    return [
        *(warning if compared.simulated else []),
        f"A = {_side(compared, compared.first)}",
        f"B = {_side(compared, compared.second)}",
        "",
        *("  ".join(_aligned(row, widths)).rstrip() for row in rows),
        "",
        *_notes(compared),
        *(line for key, pair in compared.pairs.items() for line in _alone(key, pair) if items),
    ]


def as_json(compared: Compared) -> dict[str, Any]:
    """The same for scripts: shares as fractions, costs of a question in the paper's unit, nothing rounded."""
    return {
        "preset": compared.preset.name,
        "simulated": compared.simulated,
        "first": compared.first._asdict(),
        "second": compared.second._asdict(),
        "benchmarks": {key: _document(pair) for key, pair in compared.pairs.items()},
    }


def _document(pair: Pair) -> dict[str, Any]:
    found = pair.found
    first, second = pair.right_alone
    return {
        "n": found.n,
        "seeds": {"first": pair.first.seeds, "second": pair.second.seeds},
        "calibrated": {"first": pair.first.calibrated, "second": pair.second.calibrated},
        "accuracy": {"first": pair.first.accuracy.mean, "second": pair.second.accuracy.mean},
        "difference": _estimate(found.accuracy),
        "p_exact": found.discordant.p,
        "p_holm": pair.p_holm,
        "cohens_g": found.discordant.cohens_g,
        "odds_ratio": _finite(found.discordant.odds_ratio),
        "detectable_difference": _finite(found.detectable),
        "cost_difference": _estimate(found.cost),
        "cost_ratio": _estimate(found.cost_ratio),
        "cost_ratio_all_calls": _estimate(found.cost_ratio_all_calls),
        "right_alone": {"first": first, "second": second},
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {name: _finite(getattr(estimate, name)) for name in ("mean", "low", "high")}


def _finite(value: float) -> float | None:
    """JSON has no infinity; ``None`` stands for what has no bound, or no value."""
    return value if math.isfinite(value) else None


def _side(compared: Compared, line: Line) -> str:
    measured = [pair.first if line == compared.first else pair.second for pair in compared.pairs.values()]
    title = measured[0].cells[0].run.method_title
    seeds = max((one.seeds for one in measured), key=len)
    cost = sum(one.cost / one.n for one in measured) / len(measured)
    seed = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    return f"{line} ({title}), {seed}, {cost * UNIT:.3g}e-4 a question"


def _row(key: str, pair: Pair) -> tuple[str, ...]:
    found = pair.found
    mark = {(True, False): " †A", (False, True): " †B", (True, True): " †AB"}
    return (
        key + mark.get((pair.first.calibrated, pair.second.calibrated), ""),
        str(found.n),
        f"{100 * pair.first.accuracy.mean:.1f}",
        f"{100 * pair.second.accuracy.mean:.1f}",
        f"{100 * found.accuracy.mean:+.1f} ({100 * found.accuracy.low:+.1f}, {100 * found.accuracy.high:+.1f})",
        _probability(found.discordant.p),
        _probability(pair.p_holm),
        str(found.discordant.first),
        str(found.discordant.second),
        f"{found.cost_ratio.mean:.2f} ({found.cost_ratio.low:.2f}, {found.cost_ratio.high:.2f})",
        f"{100 * found.detectable:.1f}" if math.isfinite(found.detectable) else "never",
    )


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = zip(row, widths, strict=True)
    return [first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]


def _probability(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(compared: Compared) -> list[str]:
    pairs = compared.pairs.values()
    several = any(len(one.seeds) > 1 for pair in pairs for one in (pair.first, pair.second))
    fitted = any(one.calibrated for pair in pairs for one in (pair.first, pair.second))
    where = ", on the first seed of each" if several else ""
    return [
        f"In brackets 95 % intervals (bootstrap over questions{' and seeds' if several else ''}).",
        f"A alone, B alone: questions that only this one got right{where}. p: exact McNemar test on these; p Holm:",
        "adjusted over the benchmarks. Shows from: the smallest true difference, in points, that so many questions",
        "show with 80 % power at an unadjusted 5 %. Cost: of the calls that published costs count (D-REPORT-2).",
        *(["†: the simulation fitted this side to its published value, so it is no result."] if fitted else []),
    ]


def _alone(key: str, pair: Pair) -> list[str]:
    first, second = pair.right_alone
    return [
        "",
        *(f"{key}, only {side} right: {' '.join(ids) or 'none'}" for side, ids in (("A", first), ("B", second))),
    ]

"""Which counts of right answers the paper's printed accuracies can come from (the GRIM test, docs/claims.md).

    python -m studies.grim

A percentage with two decimals takes one of 10 001 values, of which ``n`` questions reach at most ``n + 1``. All
arithmetic is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from analysis.published import Published, PublishedRow, load

# What is plausible: splits that the released code makes, with and without a last, dropped batch (D-GEN-6).
PLAUSIBLE = {"math": (416,), "gsm_hard": (1056,), "mbpp": (500, 496), "humaneval": (129, 128), "mmlu_pro": (880, 400)}
# One hundred percent in units of the last printed decimal.
WHOLE = 10_000
# No value lies further from the mean of three than this many sample deviations (2 / √3, where the others are equal).
_REACH = 1.155


def units(printed: str) -> int:
    """Return a percentage printed with two decimals in units of the last."""
    whole, _, decimals = printed.partition(".")
    return int(whole) * 100 + int(decimals)


def half_up(k: int, n: int) -> int:
    """Return the share ``k/n``, rounded half up."""
    return (2 * WHOLE * k + n) // (2 * n)


def fits(printed: str, n: int) -> list[tuple[int, bool]]:
    """Return every count out of ``n`` that prints so, and whether by rounding (half up or half to even) or cut off."""
    given, found = units(printed), []
    for k in range(max(0, (given - 1) * n // WHOLE), min(n, (given + 1) * n // WHOLE) + 1):
        whole, rest = divmod(WHOLE * k, n)
        half_even = whole + (2 * rest > n or (2 * rest == n and whole % 2))
        if given in (half_up(k, n), half_even) or given == whole:
            found.append((k, given in (half_up(k, n), half_even)))
    return found


def explain(printed: str, candidates: Sequence[int]) -> str:
    """Return the counts behind a printed percentage, or the nearest one, in words."""
    found = [(f"{k}/{n}", rounded) for n in candidates for k, rounded in fits(printed, n)]
    if rounded := [count for count, is_rounded in found if is_rounded]:
        return " ".join(rounded)
    if found:
        return f"{' '.join(count for count, _ in found)} truncated"
    given = units(printed)
    near = ((abs(WHOLE * k / n - given), k, n) for n in candidates for k in range(n + 1))
    _, k, n = min(near)
    return f"none (near {k}/{n})"


def triples(mean: str, sd: str, n: int, containing: str) -> list[tuple[float, ...]]:
    """Return the ascending triples of percentages of ``n`` with a printed mean, sample deviation and member.

    Mean and deviation are taken from the percentages as rounded; the given one need not come from a count.
    """
    centre, spread, own = units(mean), units(sd), units(containing)
    reach = _REACH * (spread + 1) + 1
    values = sorted(one for one in {half_up(k, n) for k in range(n + 1)} | {own} if abs(one - centre) <= reach)
    known = set(values)
    found = [
        (first, second, third)
        for first, second in combinations_with_replacement(values, 2)
        for third in range(3 * centre - first - second - 1, 3 * centre - first - second + 2)
        if third in known and third >= second and own in (first, second, third)
    ]
    return [tuple(value / 100 for value in one) for one in found if _has(one, spread)]


def _has(values: tuple[int, ...], sd: int) -> bool:
    """Whether whole numbers have a sample deviation that rounds to a printed one, in exact arithmetic."""
    six_variances = 3 * sum(value * value for value in values) - sum(values) ** 2
    return 6 * max(2 * sd - 1, 0) ** 2 <= 4 * six_variances <= 6 * (2 * sd + 1) ** 2


def lines(published: Published) -> Iterator[str]:
    """Return the report: the main table count by count, then the table over seeds."""
    yield f"| method | backbone | {' | '.join(published.benchmarks.values())} |"
    yield "|---" * (2 + len(published.benchmarks)) + "|"
    for row in published.rows:
        cells = [f"{_text(row, key)} {explain(_text(row, key), PLAUSIBLE[key])}" for key in published.benchmarks]
        yield f"| {row.method} | {row.backbone} | {' | '.join(cells)} |"
    yield "\nThree runs behind a mean and deviation, one of them that of the main table:"
    for method, benchmarks in published.further["seed_variance"].items():
        # The seed table has the larger backbone, which is the last row of a method.
        row = [row for row in published.rows if row.method == method][-1]
        for key in (key for key in published.benchmarks if key in benchmarks):
            mean, sd = (f"{benchmarks[key][measure]:.2f}" for measure in ("mean", "sd"))
            own = _text(row, key)
            tried = [n for n in PLAUSIBLE[key] if any(rounded for _, rounded in fits(own, n))] or PLAUSIBLE[key]
            runs = [f"{', '.join(map(str, one))} of {n}" for n in tried for one in triples(mean, sd, n, own)]
            yield f"- {method} {key}: {mean} ± {sd}: {'; '.join(runs) or 'none'}"


def _text(row: PublishedRow, benchmark: str) -> str:
    return f"{row.accuracies[benchmark].percent:.2f}"


if __name__ == "__main__":
    print("\n".join(lines(load())))

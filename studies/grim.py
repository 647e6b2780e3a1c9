"""Which counts the paper's accuracies can come from (GRIM, docs/claims.md): python -m studies.grim."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from analysis.published import Published, PublishedAccuracy, load

# What is plausible: splits that the released code makes, with and without a last, dropped batch (D-GEN-6).
PLAUSIBLE = {"math": (416,), "gsm_hard": (1056,), "mbpp": (500, 496), "humaneval": (129, 128), "mmlu_pro": (880, 400)}
# No value lies further from the mean of three than this many sample deviations (2 / √3, where the others are equal).
_REACH = 1.155


def counts(one: PublishedAccuracy) -> str:
    """Return a printed percentage with the counts behind it, or the nearest one, in words."""
    found = " ".join(f"{k}/{n}" for k, n in one.counts)
    behind = f"none (near {one.near.k}/{one.near.n})" if one.near else found
    return f"{one.percent:.2f} {behind}{' truncated' * (one.fit == 'truncated')}"


def triples(mean: float, sd: float, n: int, containing: float) -> list[tuple[float, ...]]:
    """Return the ascending triples of percentages of ``n``, rounded half up, of a mean, deviation and member."""
    # In units of the last printed decimal.
    centre, spread, own = (round(100 * printed) for printed in (mean, sd, containing))
    reach = _REACH * (spread + 1) + 1
    rounded = {(20_000 * k + n) // (2 * n) for k in range(n + 1)} | {own}
    known = {one for one in rounded if abs(one - centre) <= reach}
    found = [
        (first, second, third)
        for first, second in combinations_with_replacement(sorted(known), 2)
        for third in range(3 * centre - first - second - 1, 3 * centre - first - second + 2)
        if third in known and third >= second and own in (first, second, third)
    ]
    return [tuple(value / 100 for value in one) for one in found if _has(one, spread)]


def _has(values: tuple[int, ...], sd: int) -> bool:
    six_variances = 3 * sum(value * value for value in values) - sum(values) ** 2
    return 6 * max(2 * sd - 1, 0) ** 2 <= 4 * six_variances <= 6 * (2 * sd + 1) ** 2


def lines(published: Published) -> Iterator[str]:
    """Return the report: the main table count by count, then the table over seeds."""
    yield f"| method | backbone | {' | '.join(published.benchmarks.values())} |"
    yield "|---" * (2 + len(published.benchmarks)) + "|"
    for row in published.rows:
        cells = [counts(row.accuracies[key]) for key in published.benchmarks]
        yield f"| {row.method} | {row.backbone} | {' | '.join(cells)} |"
    yield "\nThree runs behind a mean and deviation, one of them that of the main table:"
    for method, benchmarks in published.further["seed_variance"].items():
        # The seed table has the larger backbone, which is the last row of a method.
        row = [row for row in published.rows if row.method == method][-1]
        for key in (key for key in published.benchmarks if key in benchmarks):
            mean, sd, own = benchmarks[key]["mean"], benchmarks[key]["sd"], row.accuracies[key]
            tried = [count.n for count in own.counts] if own.fit == "rounded" else PLAUSIBLE[key]
            runs = [f"{', '.join(map(str, one))} of {n}" for n in tried for one in triples(mean, sd, n, own.percent)]
            yield f"- {method} {key}: {mean:.2f} ± {sd:.2f}: {'; '.join(runs) or 'none'}"


if __name__ == "__main__":
    print("\n".join(lines(load())))

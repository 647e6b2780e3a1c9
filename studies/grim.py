"""GRIM test (docs/claims.md): the counts that the paper's accuracies can come from. ``python -m studies.grim``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from analysis.published import Published, PublishedAccuracy, load

# Plausible splits: those that the released code makes, with and without a last, dropped batch (D-GEN-6).
PLAUSIBLE = {"math": (416,), "gsm_hard": (1056,), "mbpp": (500, 496), "humaneval": (129, 128), "mmlu_pro": (880, 400)}
# No value lies further from the mean of three than this many sample deviations (2 / √3, where the others are equal).
_REACH = 1.155


def counts(accuracy: PublishedAccuracy) -> str:
    """Return a printed percentage with the counts behind it, or the nearest count if there is none."""
    exact = " ".join(f"{count.k}/{count.n}" for count in accuracy.counts)
    behind = f"none (near {accuracy.near.k}/{accuracy.near.n})" if accuracy.near else exact
    return f"{accuracy.percent:.2f} {behind}{' truncated' * (accuracy.fit == 'truncated')}"


def triples(mean: float, sd: float, n: int, member: float) -> list[tuple[float, ...]]:
    """Return the ascending triples of percentages k/n that have this printed mean and deviation and contain ``member``.

    Percentages are rounded half up, to two decimals.
    """
    # In units of the last printed decimal.
    centre, spread, given = (round(100 * printed) for printed in (mean, sd, member))
    reach = _REACH * (spread + 1) + 1
    rounded = {(20_000 * k + n) // (2 * n) for k in range(n + 1)} | {given}
    near = {value for value in rounded if abs(value - centre) <= reach}
    possible = (
        (first, second, third)
        for first, second in combinations_with_replacement(sorted(near), 2)
        for third in range(max(second, 3 * centre - first - second - 1), 3 * centre - first - second + 2)
        if third in near and given in (first, second, third)
    )
    return [tuple(value / 100 for value in triple) for triple in possible if _has_deviation(triple, spread)]


def _has_deviation(values: tuple[int, ...], sd: int) -> bool:
    six_variances = 3 * sum(value * value for value in values) - sum(values) ** 2
    return 6 * max(2 * sd - 1, 0) ** 2 <= 4 * six_variances <= 6 * (2 * sd + 1) ** 2


def lines(published: Published) -> Iterator[str]:
    """Yield the report: the main table count by count, then the table over seeds."""
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
            mean, sd, main = benchmarks[key]["mean"], benchmarks[key]["sd"], row.accuracies[key]
            sizes = [count.n for count in main.counts] if main.fit == "rounded" else PLAUSIBLE[key]
            runs = [
                f"{', '.join(map(str, triple))} of {n}" for n in sizes for triple in triples(mean, sd, n, main.percent)
            ]
            yield f"- {method} {key}: {mean:.2f} ± {sd:.2f}: {'; '.join(runs) or 'none'}"


if __name__ == "__main__":
    print("\n".join(lines(load())))

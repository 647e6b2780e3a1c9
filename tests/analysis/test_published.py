"""Published numbers are consistent in themselves."""

from collections.abc import Callable

from analysis.exhibit import BEST, SECOND, marks
from analysis.published import Count, load

PLAUSIBLE = {"math": (416,), "gsm_hard": (1056,), "mbpp": (500, 496), "humaneval": (129, 128), "mmlu_pro": (880, 400)}


def counts_where(benchmark: str, fits: Callable[[int, int], bool]) -> set[Count]:
    return {Count(k, n) for n in PLAUSIBLE[benchmark] for k in range(n + 1) if fits(k, n)}


def test_counts_are_all_that_explain_a_value():
    cells = [(column, cell) for row in load().rows for column, cell in row.accuracies.items()]
    for column, cell in cells:
        printed = round(cell.percent * 100)
        rounded = counts_where(column, lambda k, n, printed=printed: abs(10_000 * k - printed * n) * 2 < n)
        truncated = counts_where(column, lambda k, n, printed=printed: 10_000 * k // n == printed)
        if cell.fit == "rounded":
            assert set(cell.counts) == rounded, cell
        elif cell.fit == "truncated":
            assert (rounded, set(cell.counts)) == (set(), truncated), cell
        else:
            assert not rounded | truncated, cell
            every = counts_where(column, lambda k, n: True)
            distance = {count: abs(10_000 * count.k / count.n - printed) for count in every}
            assert distance[cell.near] == min(distance.values()), cell
    fits = [cell.fit for _, cell in cells]
    assert (fits.count("none"), fits.count("truncated"), len(fits)) == (10, 2, 105)


def test_marks_reproduce_the_paper_s_bold_and_underlined_values():
    """Transcribed from the typeset table, independently of the data file."""
    best = {benchmark: [("gmr", "pool")] for benchmark in (*PLAUSIBLE, "average")}
    best["mbpp"] = [("macnet_chain", "qwen-2.5-14B")]
    second = {benchmark: [("puppeteer", "qwen-2.5-32B")] for benchmark in (*PLAUSIBLE, "average")}
    second["math"] = [("macnet_complete", "qwen-2.5-32B"), ("puppeteer", "qwen-2.5-32B")]
    second["mbpp"] = [("macnet_complete", "qwen-2.5-32B")]
    second["humaneval"] = [("macnet_chain", "qwen-2.5-14B")]
    rows = load().rows
    for column in best:
        values = [row.average if column == "average" else row.accuracies[column].percent for row in rows]
        found = [((row.method, row.backbone), mark) for row, mark in zip(rows, marks(values), strict=True)]
        assert [key for key, mark in found if mark == BEST] == best[column]
        assert [key for key, mark in found if mark == SECOND] == second[column]

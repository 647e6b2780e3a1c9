"""Change of accuracies and their ranking where every reply is greedy, on the same questions (D-GEN-2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from analysis import columns, notes
from analysis.columns import by_benchmark, entries, interval_of
from analysis.exhibit import NOT_RUN, signed
from analysis.frames import IDENTITY, KEY, Key, Results
from analysis.paired_tests import ENDS, comparisons, holm
from analysis.source import Source
from analysis.table import Table
from harness.files import Declaration, check

_RESAMPLES = 1000
_SIDES = ["released", "greedy"]
_COLUMNS = [*KEY, *_SIDES, "n", *(f"difference{end}" for end in ENDS), "p", "p_holm", "rank", "greedy_rank", *IDENTITY]
_LEGEND = (
    "Diff.: greedy minus released in points on the same questions, below it the 95 % interval; p is adjusted after "
    "Holm over the rows of a benchmark ({}). Blank: greedy as released, so that one cell stands on both sides. Equal "
    "accuracies share the better rank. A method that samples one prompt several times gets copies where it is greedy."
)


class DecodingOptions(Declaration):
    """Options of the table of decoding in ``config/artefacts.yaml``."""

    greedy: Mapping[str, str]  # by method whose released code samples, the same one with temperature 0 throughout


def build(source: Source) -> Table:
    """Return a row for each row of the main table that was run, as released and greedy."""
    options: DecodingOptions = check(dict(source.options), DecodingOptions, "options of the table, artefacts.yaml")
    results = source.results()
    rows = results.ran[~results.ran.index.isin(options.greedy.values(), level="method")]
    places = [(*row, key) for row in rows.index for key in results.benchmarks]
    other = {(method, *place): (options.greedy.get(method, method), *place) for method, *place in places}
    frame = comparisons(results, {key: (greedy, key) for key, greedy in other.items() if greedy != key})
    frame = frame.reindex(pd.MultiIndex.from_tuples(other, names=KEY))
    for name, keys in zip(_SIDES, (list(other), list(other.values())), strict=True):
        frame[name] = results.measured["measured"].reindex(keys).to_numpy()
    ranks = frame[_SIDES].dropna().groupby(level="benchmark").rank(ascending=False, method="min")
    frame[["rank", "greedy_rank"]] = ranks.reindex(frame.index)
    frame["p_holm"] = frame["p"].groupby(level="benchmark", group_keys=False).apply(holm)
    return columns.table(
        results,
        label="decoding",
        caption="Accuracy of every row as its released code samples, and with temperature 0 for every call.",
        rows=columns.labels(rows),
        groups={(title, n): _group(part) for _, title, n, part in by_benchmark(results, frame)},
        legend=_legend(results, other),
        frame=frame.join(results.measured[IDENTITY]).reset_index()[_COLUMNS],
    )


def _group(rows: pd.DataFrame) -> dict[str, list[columns.Entry]]:
    return {
        "Released": entries(rows["released"], "{:.2f}", NOT_RUN),
        "Greedy": entries(rows["greedy"], "{:.2f}", NOT_RUN),
        "Diff.": entries(rows["difference"], signed, below=interval_of(rows, "difference", signed, " to ")),
        "p": entries(rows["p_holm"], "{:.3f}"),
        "Rank": entries(rows["rank"], "{:.0f}"),
        "Greedy rank": entries(rows["greedy_rank"], "{:.0f}"),
    }


def _legend(results: Results, other: Mapping[Key, Key]) -> Iterator[str]:
    yield _LEGEND.format(notes.paired_test(results.measured))
    cells = results.cells_by_row
    for key, title in results.benchmarks.items():
        pairs = [row for row in other.items() if row[0][2] == key and cells.keys() >= set(row)]
        correct = [[np.mean([cell.items["correct"] for cell in cells[side]], axis=0) for side in row] for row in pairs]
        if len(correct) > 1:
            yield f"{title}: {agreement(np.array(correct))}"


def agreement(correct: np.ndarray) -> str:
    """Return how alike two rankings are, for the shares of right answers (rows, 2, questions), as a sentence."""
    from scipy.stats import kendalltau

    rows, _, n = correct.shape
    drawn = correct @ np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), _RESAMPLES).T / n
    low, high = np.nanquantile([kendalltau(*sides).statistic for sides in drawn.T], [0.025, 0.975])
    # The released rows on one draw of the questions and on another.
    alone = np.nanmean([kendalltau(*pair).statistic for pair in drawn[:, 0].T.reshape(-1, 2, rows)])
    accuracies = correct.mean(axis=-1).T
    tied = pd.Series(accuracies[0]).duplicated(keep=False).sum()
    tau = kendalltau(*accuracies).statistic
    return (
        f"Kendall's τ-b of the two rankings of {rows} rows, {tied} tied as released, is {tau:.2f} (95 % bootstrap of "
        f"questions {low:.2f} to {high:.2f}). The released ranking on one draw of so many questions agrees with that "
        f"on another with {alone:.2f} on average. Rows that are greedy as released keep their order, which raises τ."
    )

"""Notes of tables and figures: legends of their columns, and what holds for the whole run."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.exhibit import signed
from analysis.finished_cells import FinishedCell, answered, provenance
from analysis.frames import KEY, Key, Results, rules
from analysis.registry import describe_unfinished
from harness.llm.request import GREEDY

# Captions name up to this many rows; of more rows they only count the cells.
_FEW = 3
# Percentage of missing answers from which a note explains likely causes.
_MANY = 20
_LIMIT = re.compile(r"limit: (\d+) (test|training) questions?")
WITHOUT_VERDICT = {
    "unparsable": "no answer found",
    "empty": "empty answer",
    "tool_calls": "tool call in place of text",
    "content_filter": "filtered or refused by its server",
    "truncated": "reply cut off",
    "call_failed": "call failed",
    "sandbox_error": "sandbox failed",
}


def describe_run(results: Results, frame: pd.DataFrame, notes: Iterable[str] = (), caption: str = "") -> dict[str, Any]:
    """Return the arguments of an exhibit of results. ``notes`` follow the legend; the caption is the artefact's own."""
    caption = caption or results.artefact.caption
    if results.folders and results.unfinished:
        caption += f" INCOMPLETE: {describe_unfinished(results.unfinished, len(results.cells))}."
    return {
        "label": results.artefact.key,
        "frame": frame,
        "caption": caption,
        "notes": (*results.artefact.legend, *notes),
        "run_notes": tuple(of_run(results)) if results.folders else (),
        "simulated": results.simulated,
        "provenance": provenance([cell.run for cell in results.cells]) if results.folders else {},
    }


def of_run(results: Results) -> Iterator[str]:
    """Yield what holds for the whole run: settings, prompt format (it changes accuracies by many points), decoding."""
    settings = [text + scope for text, scope in _scoped(results, _settings)]
    # Weights that answered for a backbone, where they are not the same in all cells.
    weights = _scoped(results, lambda cell: (f"{key}: {answered(of)}" for key, of in cell.run.backbones.items()))
    settings += [text + scope for text, scope in weights if scope]
    if settings:
        yield f"Settings: {'; '.join(settings)}."
    asserts = "; MBPP questions show one assert" if "mbpp" in results.benchmarks else ""
    is_asked = any(cell.run.sampling for cell in results.cells)  # A table of outcomes does not say.
    if is_asked:
        yield f"Prompts: zero-shot{asserts}."
    yield from shown_tests(results)
    if is_asked and not results.simulated:  # A simulator ignores sampling parameters.
        yield f"Decoding: {'; '.join(map(''.join, _scoped(results, _sampling)))}."
    titles = results.published.benchmarks
    other = [
        f"{title} for {titles[key]}" for key, title in results.benchmarks.items() if titles.get(key, title) != title
    ]
    if other:
        yield f"Measured on other questions than the paper's: {', '.join(other)}."
    learned = results.measured.loc[results.measured["learned"], "seeds"].str.replace(" ", "/").to_dict()
    seeds = [*_scoped(results, lambda cell: filter(None, [learned.get(_key(cell))]))]
    if len(seeds) > 1:
        yield f"Seeds of the learned rows: {'; '.join(map(''.join, seeds))}."
    if results.simulated and learned:
        yield "Numbers of learned rows differ a little between processors."


def _scoped(results: Results, texts_of: Callable[[FinishedCell], Iterable[str]]) -> Iterator[tuple[str, str]]:
    """Yield each text that some cells have, and those cells, empty if it is all of them."""
    cells_by_text: defaultdict[str, list[FinishedCell]] = defaultdict(list)
    for cell in results.cells:
        for text in dict.fromkeys(texts_of(cell)):
            cells_by_text[text].append(cell)
    for text, cells in sorted(cells_by_text.items()):
        yield text, _scope(results, cells, text)


def _settings(cell: FinishedCell) -> Iterator[str]:
    """Yield the notes of a run, without limits that leave out no question."""
    for note in cell.run.notes:
        limit = _LIMIT.fullmatch(note)
        size = cell.run.data.n_test if limit and limit[2] == "test" else cell.run.data.n_train
        if limit is None or int(limit[1]) <= size:
            yield note


def _sampling(cell: FinishedCell) -> Iterator[str]:
    """Yield the range of each sampling parameter that is not always greedy."""
    parts = []
    for name, usual in GREEDY._asdict().items():
        values = sorted({sampling[name] for sampling in cell.run.sampling})
        if values not in ([usual], []):
            parts.append(f"{name} {values[0]:g}{f' to {values[-1]:g}' if len(values) > 1 else ''}")
    yield ", ".join(parts) or "temperature 0"


def shown_tests(results: Results) -> Iterator[str]:
    """Yield on how many questions a test that the question shows decided whether a cascade accepted a reply."""
    cascades = {
        key[2]: cells[0] for key, cells in results.cells_by_row.items() if "without_tests" in cells[0].run.config
    }
    for benchmark, cell in cascades.items():
        decided = cell.rows("decisions", ["name"]).query("name == 'test'")["item_id"].nunique()
        title = results.benchmarks[benchmark]
        yield f"In cascades a shown test decided on {decided} of {len(cell.items)} questions of {title}."


def without_verdict(results: Results) -> Iterator[str]:
    """Yield the statuses without a verdict, worst row of each benchmark. The CSV has every row."""
    found = results.measured[list(WITHOUT_VERDICT)]
    worst = found.loc[found.sum(axis=1).groupby("benchmark").idxmax()].droplevel(KEY[:2])
    sentences = [
        f"{title}: {', '.join(shares)}"
        for key, title in results.benchmarks.items()
        if (shares := [f"{WITHOUT_VERDICT[name]} {value:.1f} %" for name, value in worst.loc[key].items() if value > 0])
    ]
    if sentences:
        yield (
            "Answers without a verdict, in the row with most of them (the CSV and the table errors have all rows): "
            f"{'; '.join(sentences)}."
        )
    if found[["empty", "truncated"]].max(axis=None) >= _MANY:
        yield (
            "Many answers are empty or cut off. A reasoning model needs a larger max_tokens, and its server may return "
            "the reasoning in place of the answer (reasoning_content): run gmr check (docs/own-models.md)."
        )


def secondary_rules(results: Results) -> Iterator[str]:
    """Yield how far each secondary rule, such as Math-Verify, moves the measured values."""
    for rule in rules(results.cells):
        name = rule.replace("_", "-").title()
        change = (results.measured[rule].astype(float) - results.measured["measured"]).dropna()
        for key, changes in change.groupby("benchmark"):
            low, high = signed(changes.min()), signed(changes.max())
            points = low if low == high else f"{low} to {high}"
            yield f"{results.benchmarks[key]} graded by {name} instead changes the measured values by {points} points."


def _scope(results: Results, cells: Sequence[FinishedCell], note: str) -> str:
    """Say which cells are meant, unless it is all of them, or of those with the backbone that a note names first."""
    backbone = note.partition(":")[0]
    if len(cells) in (len(results.cells), sum(backbone in cell.run.backbones for cell in results.cells)):
        return ""
    keys = {cell.run.benchmark for cell in cells}
    if len(cells) == sum(cell.run.benchmark in keys for cell in results.cells):
        return f" on {' and '.join(title for key, title in results.benchmarks.items() if key in keys)}"
    meant, names = set(map(_key, cells)), []
    for row, name in results.rows["name"].items():
        run = [key for key in results.benchmarks if (*row, key) in results.cells_by_row]
        on = [results.benchmarks[key] for key in run if (*row, key) in meant]
        names += [name if len(on) == len(run) else f"{name} on {' and '.join(on)}"] * bool(on)
    return f" (only {', '.join(names)})" if len(names) <= _FEW else f" ({len(cells)} of {len(results.cells)} cells)"


def _key(cell: FinishedCell) -> Key:
    return cell.run.method, cell.run.backbone, cell.run.benchmark

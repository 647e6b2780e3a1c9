"""Audit of a finished run: test questions in training, and whether the results follow from the call logs."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from cli.app import last_run
from cli.bundle import pack
from cli.replay import replay
from harness.benchmarks.prepare import Prepared
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.call_log import CallLogReader
from harness.runner import layout
from harness.runner.plan import questions
from harness.runner.results import read_rows
from harness.unfinished import temporary_prefix

# Minimum cosine similarity of a near-duplicate.
_NEAR = 0.9


def audit(name: str) -> dict[str, Any]:
    """Audit the finished cells of a preset, write the result to ``audit.json`` and return it.

    Keys: ``asked`` (test questions used in a training), ``near`` (near-duplicates of a training question),
    ``differences`` (results that do not follow from the log).
    """
    run = last_run(name)
    with TemporaryDirectory(prefix=temporary_prefix("audit")) as folder:
        bundle = Path(folder) / "run.zip"
        _, left_out = pack(name, bundle, is_private=True)
        replayed = replay(bundle, make_reports=False, code=run.extra)
    methods = run.entries
    trained = [cell for cell in replayed.differences if methods[cell.method].trained]
    used = {key: questions(run, key) for key in dict.fromkeys(cell.benchmark for cell in trained)}
    duplicates = [_duplicates(prepared) for prepared in used.values()]
    exact, near = (sorted({id_ for ids in duplicates for id_ in ids[kind]}) for kind in (0, 1))
    # The bundle also has the calls that recordings answered.
    root = replayed.recording.root
    asked_ids = (_asked(root / layout.cell(name, cell), used[cell.benchmark]) for cell in trained)
    asked = sorted({*exact}.union(*asked_ids))
    folders = [layout.cell(name, cell) for cell in replayed.differences]
    n = len(folders)
    differences = {str(cell): difference for cell, difference in replayed.differences.items() if difference}
    summary = [
        f"test questions asked in {len(trained)} trainings: {', '.join(asked) or 'none'}",
        f"test questions that nearly equal a training question: {', '.join(near) or 'none'}",
        f"cells whose verdicts and decisions follow from their logs: {n - len(differences)} of {n}",
        *([f"unfinished cells, not audited: {len(left_out)}"] if left_out else []),
        "not excluded: settings chosen on test results, a fabricated log",
    ]
    result = {
        "passed": not asked and not differences,
        "summary": "; ".join(summary),
        "cells": {str(folder): orjson.loads((folder / "run.json").read_bytes())["run_id"] for folder in folders},
        "asked": asked,
        "near": near,
        "differences": differences,
    }
    write_atomically(layout.audit(name), orjson.dumps(result, option=orjson.OPT_INDENT_2))
    return result


def _duplicates(prepared: Prepared) -> tuple[set[str], set[str]]:
    """Find the test questions that equal a training question, and their near-duplicates.

    Case and white space are ignored. A near-duplicate has a tf-idf cosine of at least ``_NEAR`` over character
    5-grams.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not prepared.train or not prepared.test:
        return set(), set()
    train, test = ([_text(item.question) for item in items] for items in (prepared.train, prepared.test))
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(5, 5), lowercase=False).fit([*train, *test])
    near = (vectors.transform(test) @ vectors.transform(train).T >= _NEAR).nonzero()
    exact = {item.id for item, text in zip(prepared.test, test, strict=True) if text in train}
    return exact, {prepared.test[row].id for row, column in zip(*near, strict=True) if test[row] != train[column]}


def _asked(folder: Path, used: Prepared) -> Iterator[str]:
    """Iterate over ids of test questions that occur in a prompt of a cell's training, but in no training question."""
    train = [_text(item.question) for item in used.train]
    test = {item.id: _text(item.question) for item in used.test}
    test = {id_: text for id_, text in test.items() if not any(text in question for question in train)}
    keys = {row["key"] for row in read_rows(folder / "training_calls.parquet", ["key"])}
    with CallLogReader(folder / layout.CALL_LOG) as log:
        for key in sorted(keys):
            call = log.texts(key)
            if call is None or not call.messages:
                raise UserError(f"{folder.name}: the prompt of call {key[:12]} of a training is in no log; not audited")
            prompt = _text(" ".join(message.content for message in call.messages))
            yield from (id_ for id_, text in test.items() if text in prompt)


def _text(text: str) -> str:
    return " ".join(text.lower().split())

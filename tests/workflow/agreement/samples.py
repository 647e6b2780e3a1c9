"""Records of our own in the shape of the recorded ones."""

import gzip
import json
from pathlib import Path
from typing import Any

from workflow.agreement.records import Record


def record(
    file: str,
    response: str,
    gold: str = "",
    *,
    pred: str | None = None,
    correct: bool | None = True,
    upstream: str = "somebody/something",
    item_id: str = "1",
    **meta: Any,
) -> Record:
    """A record with as little said as needed."""
    return Record(file, item_id, "model", upstream, response, gold, pred, correct, meta)


def line(file: str, response: str, gold: str | None, **others: Any) -> dict[str, Any]:
    """A line of a file of outputs."""
    return {
        "benchmark": file,
        "item_id": 1,
        "model": "model",
        "response": response,
        "gold": gold,
        "upstream_pred": None,
        "upstream_correct": True,
        "upstream": "somebody/something:path/of/file@abc",
        "meta": {},
        **others,
    }


def write(folder: Path, file: str, lines: list[dict[str, Any]]) -> None:
    """A data directory with one file of outputs."""
    (folder / "outputs").mkdir(exist_ok=True)
    content = "".join(f"{json.dumps(fields)}\n" for fields in lines)
    (folder / "outputs" / f"{file}.jsonl.gz").write_bytes(gzip.compress(content.encode()))

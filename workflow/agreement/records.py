"""Real model outputs with the verdicts their publishers recorded, as they lie in the data directory."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.benchmarks.sources import DATA_DIR
from harness.errors import UserError, unknown

FILES = ("mmlu_pro", "mmlu_stem", "math", "gsm8k", "answer_pairs", "humaneval", "mbpp")


@dataclass(frozen=True, slots=True)
class Record:
    """One model output.

    Attributes:
        file: Name of the file it stands in, a member of :data:`FILES`.
        item_id: The question, as upstream numbers it.
        model: The model, as upstream names it.
        upstream: Owner and name of the repository that published it.
        response: The text of the model.
        gold: The reference answer upstream graded against; empty where it stored none.
        upstream_pred: What upstream extracted, where it stored that.
        upstream_correct: Upstream's verdict; ``None`` where it gave none.
        meta: What else is known.
    """

    file: str
    item_id: str
    model: str
    upstream: str
    response: str
    gold: str
    upstream_pred: str | None
    upstream_correct: bool | None
    meta: Mapping[str, Any]

    @property
    def strategy(self) -> str:
        """How the model was asked, where one model occurs more than once."""
        return str(self.meta.get("strategy", ""))

    @property
    def key(self) -> str:
        """What no other record of the file has."""
        return "/".join(part for part in (self.item_id, self.model, self.strategy) if part)


def data_directory(given: Path | None) -> Path:
    """The folder given, or else the one the environment names.

    Raises:
        UserError: Neither is there.
    """
    named = given or os.environ.get(DATA_DIR)
    if not named:
        raise UserError(f"which folder holds the recorded outputs? Name it by --data-dir or in {DATA_DIR}")
    return Path(named).expanduser()


def read(folder: Path, file: str) -> list[Record]:
    """All records of one file, in its order.

    Args:
        folder: The data directory.
        file: A member of :data:`FILES`.

    Raises:
        UserError: There is no such file, or it is damaged.
    """
    if file not in FILES:
        raise unknown("file of outputs", file, FILES, "the data directory")
    return [_record(file, fields) for fields in json_lines(folder / "outputs" / f"{file}.jsonl.gz")]


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a compressed file of JSON lines.

    Raises:
        UserError: It does not exist, or is damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; point --data-dir or {DATA_DIR} to the folder that holds it") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UserError(f"{path} cannot be read ({error}); it is damaged or cut off: fetch it again") from error


def _record(file: str, fields: Mapping[str, Any]) -> Record:
    upstream, _, _ = fields["upstream"].partition(":")
    response = fields["response"]
    # This publisher stored the backslashes of its chain-of-thought texts doubled.
    if upstream == "microsoft/rho" and fields["meta"].get("strategy") == "cot":
        response = response.replace("\\\\", "\\")
    return Record(
        file=file,
        item_id=str(fields["item_id"]),
        model=fields["model"],
        upstream=upstream,
        response=response,
        gold=fields["gold"] or "",
        upstream_pred=fields["upstream_pred"],
        upstream_correct=fields["upstream_correct"],
        meta=fields["meta"],
    )

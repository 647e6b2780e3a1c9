"""Which type each column of a report's CSV has, so that parquet says it and no reader has to guess.

What is not named here is a number. A type goes by the name of a column and not by what happens to stand in it, so that
files of two runs fit together: one seed looks like a number and three do not, a cost may happen to be whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = frozenset(
    (
        *("method", "backbone", "benchmark", "benchmark_title", "reference", "measure", "preset", "kind", "status"),
        *("seeds", "run", "run_id", "config_hash", "code", "data_checksum", "split_checksum", "source", "backbones"),
        *("published_fit", "published_counts", "model", "replies", "revision", "train", "test"),
        *("seconds_are", "concurrency", "engine", "machine", "edit", "modification", "reason", "statistic"),
    )
)
_WHOLE = frozenset(
    ("n", "n_train", "n_test", "seed", "timed_seed", "epoch", "update", "round", "parent", "published_questions")
)
_YES_OR_NO = frozenset(("calibrated", "follows_the_rule", "chosen", "success"))
_YES = {"true": True, "false": False}


def typed(name: str, values: Sequence[str]) -> pa.Array:
    """A column with its type; an empty field has no value.

    A column of a new artefact may hold text without being named above. It is text then, unless all its fields are
    empty.

    Args:
        name: Of the column.
        values: Its fields as they stand in the file.
    """
    import pyarrow as pa

    given = [value or None for value in values]
    try:
        if name in _WHOLE:
            return pa.array([None if value is None else int(value) for value in given], pa.int64())
        if name in _YES_OR_NO:
            return pa.array([None if value is None else _YES[value.lower()] for value in given], pa.bool_())
        if name not in _TEXTS:
            return pa.array([None if value is None else float(value) for value in given], pa.float64())
    except (ValueError, KeyError):
        pass
    return pa.array(given, pa.string())

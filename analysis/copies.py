"""How many calls of a method are copies: requests of a question that were made before, word for word and draw for draw.

Such a call is asked once and charged at each use, so it costs what another view of the question would, and brings none.
"""

from __future__ import annotations

from analysis.measures import Measurement
from analysis.traces import read_table


def share(measurement: Measurement) -> float | None:
    """The share of the calls for the test questions that repeat an earlier call of the same question; mean over seeds.

    The same messages with the same sampling and the same draw to the same backbone have one key, and get one reply.

    Returns:
        ``None`` where a seed made no call.

    Raises:
        UserError: A table of calls cannot be read.
    """
    found = []
    for cell in measurement.cells:
        calls = read_table(cell.folder / "calls.parquet", ("item_id", "key"))
        if calls.empty:
            return None
        found.append(calls.duplicated().mean())
    return float(sum(found) / len(found))

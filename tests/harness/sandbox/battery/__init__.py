"""Programs that want to pass without being right, to see what is not theirs, to take what they may not, or to stay.

The programs are grouped by what they attack. What the neighbouring tests try when a program starts is tried here from
inside a call that the checks make.
"""

from __future__ import annotations

import os
from types import ModuleType

from tests.harness.sandbox.battery import connection, disk, ends, exhaustion, kernel, spying, streams, texts, values
from tests.harness.sandbox.battery.entry import Entry

THEMES: tuple[ModuleType, ...] = (exhaustion, ends, streams, values, connection, spying, kernel, disk, texts)

BATTERY: tuple[Entry, ...] = tuple(
    entry for theme in THEMES for entry in theme.PROGRAMS if not entry.machines or os.uname().machine in entry.machines
)

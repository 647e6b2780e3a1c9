"""The number of threads of the numerical libraries, set once where a process begins."""

from __future__ import annotations

import os


def use_one_thread() -> None:
    """Let torch and the libraries under it compute with one thread in this process and in those it starts.

    How a sum is divided among threads shows in its last digits, so their number would show in every result. Call it
    before torch is imported: the libraries read the environment when they are loaded, and a limit set later holds for
    the calling thread alone.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"

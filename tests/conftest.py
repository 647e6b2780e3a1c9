"""Tests compute as the processes of the suite do."""

from harness.concurrency import use_one_thread

use_one_thread()

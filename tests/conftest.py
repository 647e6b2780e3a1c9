"""Tests compute as the processes of the suite do."""

from harness.threads import use_one_thread

use_one_thread()

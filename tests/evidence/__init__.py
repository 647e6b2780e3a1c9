"""Long measurements, each a command that prints its table: ``make evidence`` runs them one after the other."""

from harness.concurrency import use_one_thread

use_one_thread()

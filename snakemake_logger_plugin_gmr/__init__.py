"""Snakemake logger plugin: one line per finished or failed job, then the outputs and the next command.

Snakemake finds it by the package name. The profiles select it (``logger: gmr``); ``--logger`` without a name restores
Snakemake's own output. The log in ``.snakemake/log`` is complete in both cases.
"""

import logging
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

_CELLS = {"cell", "learned_cell"}
_KILLED = "no message in its log; it may have been killed (out of memory?), or a traceback above says why"
_STOPPED = "stopped by"
_RESUME = "stopped; what is finished is kept, and the same command resumes"
_UNWRITABLE = ("PermissionError", "OSError", "NotADirectoryError", "FileExistsError", "ProtectedOutputException")


class LogHandler(LogHandlerBase):
    """Prints Snakemake's events as single lines."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        self._stream = sys.stdout if self.common_settings.dryrun else sys.stderr
        self._start = time.monotonic()
        self._planned, self._done, self._seconds = Counter[str](), Counter[str](), Counter[str]()  # by rule
        self._jobs: dict[int, Any] = {}  # announcements by job id
        self._failed: dict[int, str] = {}  # causes by job id
        self._last = ""
        usual = sys.excepthook
        # Snakemake does not catch Ctrl-C before the first job.
        sys.excepthook = lambda kind, *rest: self._print(_RESUME) if kind is KeyboardInterrupt else usual(kind, *rest)

    def emit(self, record: logging.LogRecord) -> None:
        job, text = record.__dict__, self.format(record)
        match job.get("event"):
            case LogEvent.RUN_INFO if not self._planned:
                self._planned = Counter({rule: number for rule, number in job["stats"].items() if rule != "total"})
                cells, trained = sum(self._planned[rule] for rule in _CELLS), self._planned["learned_cell"]
                self._print(f"jobs to do: {self._planned.total()}; cells: {cells}, {trained} of them trained first")
            case LogEvent.JOB_INFO:
                self._jobs[job["jobid"]] = {**job, "started": time.monotonic()}
                self._failed.pop(job["jobid"], None)  # A retry, as in profiles/slurm.
                if self.common_settings.dryrun:
                    reasons = (part.split(": ")[0] for part in str(job["reason"]).split("; "))
                    self._print(f"{_name(job)}: {'; '.join(filter(None, reasons))}")
            case LogEvent.JOB_FINISHED if job["job_id"] in self._jobs:  # --quiet rules hides them.
                self._finish(self._jobs[job["job_id"]])
            case LogEvent.JOB_ERROR:
                self._fail(job["jobid"], list(map(Path, job["log"])))
            case LogEvent.ERROR if job["exception"] != "RuleException":  # JOB_ERROR reports it too, with the log.
                self._end(_explained(text, job["exception"]))
            case LogEvent.SHELLCMD:
                self._print(job["shellcmd"])
            case None if record.levelno >= logging.ERROR:
                self._end(text)
            case None if record.levelno >= logging.WARNING or text.startswith(("Nothing to be done", "Unlock")):
                self._print(text)
            case LogEvent.RUN_INFO:
                self._print(text)  # The job table at the end of a dry run.

    def _finish(self, job: Any) -> None:
        """Print progress and the estimated time left, and after the last job what was made."""
        rule, seconds = job["rule_name"], time.monotonic() - job["started"]
        self._done[rule] += 1
        self._seconds[rule] += seconds
        done, planned = (sum(jobs[rule] for rule in _CELLS) for jobs in (self._done, self._planned))
        left = self._planned - self._done - Counter(self._jobs[number]["rule_name"] for number in self._failed)
        work = sum(left[rule] * self._seconds[rule] / self._done[rule] for rule in left if self._done[rule])
        rest = (time.monotonic() - self._start) * work / self._seconds.total()
        # A cell of each remaining rule must have finished.
        is_known = work and all(self._done[rule] for rule in _CELLS & {*left})
        time_left = f", about {_duration(rest)} left" if is_known else ""
        self._print(
            f"{f'[{done} of {planned} cells{time_left}] ' if planned else ''}{_name(job)}, {_duration(seconds)}"
        )
        if self._done == self._planned:
            self._succeed()

    def _fail(self, number: int, logs: list[Path]) -> None:
        """Print a failed job with its log and, unless another job failed for the same reason, its cause."""
        lines = [line for log in logs if log.exists() for line in log.read_text(errors="replace").splitlines()]
        errors = [at for at, line in enumerate(lines) if line.startswith(("error: ", _STOPPED))]
        cause = "\n  ".join(lines[errors[-1] :]) if errors else _KILLED
        shown = "" if cause in self._failed.values() else f"\n  {cause}"
        self._failed[number] = cause
        if not cause.startswith(_STOPPED):
            self._print(f"failed: {_name(self._jobs[number])} ({', '.join(map(str, logs))}){shown}")

    def _end(self, error: str) -> None:
        """Print how many jobs failed, or the error that ended the run without a failed job."""
        causes = list(self._failed.values())
        if any(cause.startswith(_STOPPED) for cause in causes):
            # A stop also ends jobs that have no message yet.
            causes, error = [cause for cause in causes if not cause.startswith((_STOPPED, _KILLED))], _RESUME
        if causes:
            error = f"failed jobs: {len(causes)}; all else is kept: fix this and give the command again"
        if error != self._last:
            self._print(error)

    def _succeed(self) -> None:
        """Print what was made (a link or the page leads to all other files) and the next command."""
        self._print(f"done in {_duration(time.monotonic() - self._start)}")
        jobs = [*self._jobs.values()]
        shown = next((rule for rule in ("link", "page") if self._done[rule]), "")
        outputs = [job["output"] for job in jobs if shown in ("", job["rule_name"]) and job["output"]]
        names = sorted(paths[0] if len(paths) == 1 else f"{paths[0].rpartition('.')[0]}.*" for paths in outputs)
        if names := [name for name in names if name.startswith("reports/")]:
            self._print(f"made: {', '.join(names)}")
        for cell in [job["wildcards"] for job in jobs if job["rule_name"] in _CELLS][:1]:
            command = f"show {cell['method']} {cell['benchmark']} --wrong" if self._done["page"] else "report page"
            self._print(f"next: gmr {command} --preset {cell['preset']}")

    def _print(self, line: str | None) -> None:
        if line:
            self._last = line
            with suppress(OSError):  # A closed terminal must not prevent Snakemake from releasing its lock.
                self._stream.write(f"{line}\n")  # A single write, since jobs share the terminal.
                self._stream.flush()


def _explained(text: str, exception: str) -> str:
    """Convert an exception of Snakemake to one line with the command that fixes it."""
    match exception:
        case "LockException":
            return f"error: another snakemake is at work in {Path.cwd()}; if it was killed: `snakemake --unlock`"
        case _ if "Invalid config definition" in text:
            return "error: --config takes KEY=VALUE with a key of the preset, such as limit='{test: 8}'"
        case "MissingRuleException":
            from cli.reports import hint_for

            missing = text.partition(" (if you")[0].splitlines()[-1].strip()
            return f"error: {missing}; {hint_for(missing.split()[-1])}"
        case _ if exception in _UNWRITABLE or "Failed to create output directory" in text:
            # Snakemake also writes a cache in the user's home.
            cure = f"make {Path.cwd()} writable, free space, or name another folder for caches by XDG_CACHE_HOME"
            return f"error: cannot write: {text.strip().splitlines()[-1].strip()}; {cure}"
        case _ if "UserError" in text:  # `UserError: MESSAGE`, or `UserError in file FILE, line N:` and MESSAGE
            first, *rest = text.partition("UserError")[2].splitlines()
            return f"error: {first[2:] if first.startswith(': ') else rest[0]}"
    return text


def _name(job: Any) -> str:
    values = {key: f"seed {value}" if key == "seed" else value for key, value in (job["wildcards"] or {}).items()}
    return " ".join([job["rule_name"].removeprefix("learned_"), *(values[key] for key in values if key != "preset")])


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))

"""Snakemake logger plugin: prints one line per finished job, failures with their cause, and the outputs.

Snakemake finds it by the package name. The profiles select it (``logger: gmr``); ``--logger`` without a name restores
Snakemake's own output. The log in ``.snakemake/log`` is complete in both cases.
"""

import logging
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import TracebackType

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

_CELLS = ("cell", "learned_cell")
_MOST_LINES = 8
_KILLED = "no message in its log; it may have been killed (out of memory?), or a traceback above says why"
_STOPPED = "stopped by"
_UNWRITABLE = ("PermissionError", "OSError", "NotADirectoryError", "FileExistsError", "ProtectedOutputException")
_IGNORED = {LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.PROGRESS, LogEvent.GROUP_INFO}


@dataclass
class Job:
    """A job as announced by Snakemake. Times are in seconds of the monotonic clock."""

    rule: str
    wildcards: Mapping[str, str]
    outputs: list[str]
    start: float
    duration: float | None = None  # None until finished
    log: str = ""
    failure: str = ""  # last error in the log of a failed job

    @property
    def name(self) -> str:
        values = {key: f"seed {value}" if key == "seed" else value for key, value in self.wildcards.items()}
        values.pop("preset", None)
        return " ".join([self.rule.removeprefix("learned_"), *values.values()])


class LogHandler(LogHandlerBase):
    """Prints Snakemake's events as single lines."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        self._stream = sys.stdout if self.common_settings.dryrun else sys.stderr
        self._start = time.monotonic()
        self._planned: Counter[str] = Counter()  # jobs by rule
        self._jobs: dict[int, Job] = {}
        self._notes: list[str] = []  # messages before the plan
        self._has_ended = False
        sys.excepthook = self._end_uncaught

    def emit(self, record: logging.LogRecord) -> None:
        event, fields = getattr(record, "event", None), record.__dict__
        match event:
            case LogEvent.RUN_INFO if self._planned:
                self._print(record.getMessage())  # Job table at the end of a dry run.
            case LogEvent.RUN_INFO:
                self._plan(fields["stats"])
            case LogEvent.JOB_INFO:
                names = fields["wildcards"] or {}
                job = Job(fields["rule_name"], names, list(map(str, fields["output"])), time.monotonic())
                self._jobs[fields["jobid"]] = job
                if self.common_settings.dryrun:
                    reasons = (part.split(": ")[0] for part in str(fields["reason"]).split("; "))
                    self._print(f"{job.name}: {'; '.join(filter(None, reasons))}")
            case LogEvent.JOB_STARTED:
                for job in (self._jobs[number] for number in fields["jobs"] if number in self._jobs):
                    job.start, job.failure = time.monotonic(), ""  # A retry, as in profiles/slurm.
            case LogEvent.JOB_FINISHED:
                self._finish(self._jobs[fields["job_id"]])
            case LogEvent.JOB_ERROR:
                job = self._jobs.setdefault(fields["jobid"], Job(fields["rule_name"], {}, [], time.monotonic()))
                error = _last_error(fields["log"])
                job.log, job.failure = ", ".join(map(str, fields["log"])), error or _KILLED
                if not error.startswith(_STOPPED):
                    self._print(f"{'failed' if error else 'ended without a message'}: {job.name}")
            case LogEvent.ERROR if fields["exception"] == "RuleException":
                pass  # JOB_ERROR reports it too, with the log.
            case LogEvent.ERROR:
                self._end(_error(record.getMessage(), fields["exception"]))
            case LogEvent.SHELLCMD:
                self._print(fields.get("shellcmd") or fields.get("cmd") or "")
            case None if record.levelno < logging.WARNING:
                self._notes.append(self.format(record))
            case None if record.levelno >= logging.ERROR and self._failed():
                self._end("")
            case _ if event not in _IGNORED:
                self._print(self.format(record))

    def close(self) -> None:
        """Print the collected messages if Snakemake had nothing to run."""
        if not self._planned and sys.exc_info()[0] is not KeyboardInterrupt:
            self._print("\n".join(self._notes))
        super().close()

    def _plan(self, stats: Mapping[str, int]) -> None:
        self._planned = Counter({rule: number for rule, number in stats.items() if rule != "total"})
        cells, learned = sum(self._planned[rule] for rule in _CELLS), self._planned["learned_cell"]
        trained = f" ({learned} of them trained first)" if learned else ""
        head = f"{_count(cells, 'cell')}{trained} and " if cells else ""
        self._print(f"to do: {head}{_count(self._planned.total() - cells, 'other job' if cells else 'job')}")

    def _finish(self, job: Job) -> None:
        """Print progress after a job, and a summary after the last one."""
        job.duration = time.monotonic() - job.start
        finished = [job for job in self._jobs.values() if job.duration is not None]
        done, total = sum(job.rule in _CELLS for job in finished), sum(self._planned[rule] for rule in _CELLS)
        unit = "cells"
        if done == total:
            done, total, unit = len(finished), self._planned.total(), "jobs"
        self._print(f"[{done} of {total} {unit}{self._time_left(finished)}] {job.name}, {_duration(job.duration)}")
        if len(finished) == self._planned.total():
            self._succeed(finished)

    def _time_left(self, finished: list[Job]) -> str:
        """Estimate the time left. Empty until a cell of each remaining rule has finished."""
        durations: defaultdict[str, list[float]] = defaultdict(list)
        for job in finished:
            durations[job.rule].append(job.duration or 0.0)
        left = self._planned - Counter(job.rule for job in (*finished, *self._failed()))
        if not left or any(rule in _CELLS and rule not in durations for rule in left):
            return ""
        work = sum(number * fmean(durations[rule]) for rule, number in left.items() if rule in durations)
        done = sum(map(sum, durations.values()))
        return f", about {_duration((time.monotonic() - self._start) * work / done)} left" if work and done else ""

    def _failed(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.failure]

    def _end(self, error: str) -> None:
        """Print once which jobs failed and why, or the error that ended the run without a failed job."""
        failed = self._failed()
        if not failed:
            self._notes.clear()
            self._print(error)
        if not failed or self._has_ended:
            return
        self._has_ended = True
        if any(job.failure.startswith(_STOPPED) for job in failed):
            # The same stop also ended the jobs without a message.
            failed = [job for job in failed if not job.failure.startswith((_STOPPED, _KILLED))]
        if not failed:
            self._print("stopped; what is finished is kept, and the same command resumes")
            return
        self._print(f"{_count(len(failed), 'job')} failed, all else is kept; fix this and give the command again:")
        causes: defaultdict[str, list[str]] = defaultdict(list)
        for job in failed:
            causes[job.failure].append(f"{job.name} ({job.log})")
        for cause, names in causes.items():
            self._print("\n".join(f"  {line}" for line in [*_first(names), cause]))

    def _end_uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Print one line for Ctrl-C before the first job, which Snakemake does not catch."""
        if not issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        self._notes.clear()
        self._print("stopped; what is finished is kept, and the same command resumes")

    def _succeed(self, finished: list[Job]) -> None:
        self._print(f"done in {_duration(time.monotonic() - self._start)}")
        made: dict[str, str] = {}
        for job in finished:
            paths = [path for path in job.outputs if path.startswith("reports/")]
            made |= {path if len(paths) == 1 else f"{paths[0].rpartition('.')[0]}.*": job.rule for path in paths}
        # A link or the page leads to all other files.
        shown = [path for path, rule in made.items() if rule == "link"]
        shown = shown or [path for path in made if path.endswith("index.*")] or list(made)
        if shown:
            self._print(f"made: {', '.join(_first(sorted(shown)))}")
        if cells := [job.wildcards for job in finished if job.rule in _CELLS]:
            cell = next((cell for cell in cells if cell["method"] == "gmr"), cells[0])
            is_changed = any("=" in word and not word.startswith(("-", "preset=")) for word in sys.argv[1:])
            settings = f" --set @results/{cell['preset']}/config.yaml" if is_changed else ""
            page = "" if "page" in made.values() else f"gmr report page --preset {cell['preset']}{settings}, "
            self._print(f"next: {page}gmr show {cell['method']} {cell['benchmark']} --preset {cell['preset']} --wrong")

    def _print(self, line: str) -> None:
        if line and line != "None":
            # A closed terminal must not prevent Snakemake from releasing its lock.
            with suppress(OSError):
                # A single write, since jobs share the terminal.
                self._stream.write(f"{line}\n")
                self._stream.flush()


def _last_error(logs: Iterable[str]) -> str:
    """Last error in a job's logs, with the following lines. Empty if there is none."""
    lines = [line for log in map(Path, logs) if log.exists() for line in log.read_text(errors="replace").splitlines()]
    errors = [number for number, line in enumerate(lines) if line.startswith(("error: ", _STOPPED))]
    return "\n  ".join(lines[errors[-1] :]) if errors else ""


def _error(text: str, exception: str) -> str:
    """Convert an exception of Snakemake to one line with the command that fixes it."""
    match exception:
        case "LockException":
            return (
                f"error: another snakemake is at work in {Path.cwd()}; wait until it ends. If it "
                "was killed, release its lock with `snakemake --unlock`"
            )
        case _ if exception in _UNWRITABLE or "Failed to create output directory" in text:
            # Snakemake also writes a cache in the user's home.
            cures = f"make {Path.cwd()} writable, free space, or name another folder for caches by XDG_CACHE_HOME"
            what = "cannot write " if exception.startswith("Protected") else ""
            return f"error: {what}{text.strip().splitlines()[-1].strip()}; {cures}"
        case "MissingRuleException":
            from cli.reports import all_files
            from harness.errors import hint

            missing = text.split(" (if you")[0].splitlines()[-1].strip()
            *_, target = missing.split()
            # If the preset is wrong, the artefact's name may still be right.
            files = [] if target.endswith(tuple(all_files())) else all_files()
            names = "`gmr --list` names the artefacts and presets"
            return f"error: {missing}; {hint(target.removeprefix('reports/'), files, names)}"
        case "UserError" | "InputFunctionException" if "UserError" in text:
            # A UserError of the rules is one line above its traceback.
            message = re.split(r"UserError(?:: | in file .*\n)", text)[1]
            return f"error: {message.splitlines()[0]}"
    return text


def _first(names: list[str]) -> list[str]:
    return [*names[:_MOST_LINES], *([f"and {len(names) - _MOST_LINES} more"] if len(names) > _MOST_LINES else [])]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""The terminal of a run: a line for every finished job with cells done and time left, then what was made.

Snakemake finds logger plugins only in packages that are installed, not in a checkout, so the console takes the place of
the handler of its terminal. ``--verbose`` leaves that handler alone; its own log in ``.snakemake/log`` is always whole.
"""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from snakemake.logging import LogEvent, logger
from snakemake.settings.enums import Quietness

from harness.runner import layout

CELLS = ("cell", "learned_cell")
_SHOWN = 8
# What Snakemake says of itself; the console says what of it matters to a user.
_NOISE = re.compile(
    r"Assuming unrestricted|Config file|Building DAG|Using shell|Conda env|Select jobs|Complete log|Elapsed|Shutting|"
    r"Exiting because|Removing output|Reasons:|Some jobs were trig|Rules with provenance|Waiting at most"
)
_KILLED = "no message in its log: it may have been killed (out of memory?), or a traceback above says why"
_STOPPING = re.compile(r"Terminating processes|Will exit after")
_SILENT = {LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.PROGRESS, LogEvent.GROUP_INFO}


class Console(logging.Handler):
    """Replaces Snakemake's terminal handler, unless ``--verbose`` or ``--quiet all`` was given."""

    def __init__(self, workflow: Any) -> None:
        super().__init__()
        self._workflow = workflow
        self._settings = settings = workflow.output_settings
        self._jobs: dict[int, Any] = {}
        self._begun: dict[int, float] = {}
        self._took: dict[Any, list[float]] = defaultdict(list)
        self._cells = 0
        self._finished: set[int] = set()
        self._failed: dict[int, str] = {}
        self._silent: set[int] = set()  # failed without a message
        self._stopping = False
        self._start = time.monotonic()
        own = [one for one in logger.handlers if one.name == "DefaultStreamHandler"]
        loud = settings.verbose or settings.debug_dag or Quietness.ALL in (settings.quiet or ())
        self._terminal: Any = own[0] if own and workflow.is_main_process and not loud else None
        if self._terminal:
            logger.removeHandler(self._terminal)
            logger.addHandler(self)

    def begin(self) -> None:
        """Say what is to be done; called when the jobs are known, before the first."""
        self._start = time.monotonic()
        self._jobs = {self._workflow.dag.jobid(job): job for job in self._workflow.dag.needrun_jobs()}
        self._cells = sum(job.rule.name in CELLS for job in self._workflow.dag.jobs)
        cells = [job for job in self._jobs.values() if job.rule.name in CELLS]
        learned = sum(job.rule.name == "learned_cell" for job in cells)
        if self._jobs:
            trained = f", {learned} of them trained first" if learned else ""
            of_them = f"{len(cells)} cells{trained}, and {len(self._jobs) - len(cells)} other jobs"
            self._say(f"to do: {of_them if cells else _count(len(self._jobs), 'job')}")

    def succeed(self) -> None:
        """Say what was made, where it is, and what to look at next."""
        dag = self._workflow.dag
        asked = sorted({*map(str, dag.targetfiles)} or {str(file) for job in dag.targetjobs for file in job.input})
        pages = [file for file in asked if file.endswith("index.html")]
        shown = pages or asked
        cells = [job.wildcards for job in dag.jobs if job.rule.name in CELLS]
        if self._jobs:
            self._say(f"done in {_duration(time.monotonic() - self._start)}")
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        self._say(f"made: {', '.join(shown[:_SHOWN])}{more}")
        if cells:
            last = next((one for one in cells if one.method == "gmr"), cells[0])
            page = "" if pages else f"gmr report page --preset {last.preset}, "
            self._say(f"next: {page}gmr show {last.method} {last.benchmark} --preset {last.preset} --wrong")

    def fail(self) -> None:
        """Say that the run was stopped, or which jobs failed and why, each in a line."""
        # What ended a job before it could say anything ended the run, too.
        ended = self._silent if self._stopping else set()
        failed = [line for number, line in self._failed.items() if number not in ended]
        if not failed:
            if self._stopping:
                self._say("stopped; what is finished is kept, and the same command resumes")
            return
        self._say(f"{_count(len(failed), 'job')} failed, all else is kept; mend this and give the command again:")
        for line in failed[:_SHOWN]:
            self._say(f"  {line}")
        if len(failed) > _SHOWN:
            self._say(f"  and {len(failed) - _SHOWN} more")

    def emit(self, record: logging.LogRecord) -> None:
        """Say what a record of Snakemake means to a user, if anything."""
        event, text = getattr(record, "event", None), record.getMessage()
        fields: Any = record.__dict__
        if event is LogEvent.JOB_STARTED:
            self._begun |= dict.fromkeys(fields["jobs"], time.monotonic())
            for number in fields["jobs"]:
                # Tried again, as profiles/slurm does.
                self._failed.pop(number, None)
        elif event is LogEvent.JOB_FINISHED:
            self._finish(fields["job_id"])
        elif event is LogEvent.JOB_ERROR:
            self._note_failure(fields)
        elif event is LogEvent.ERROR:
            self._say(_error(text, fields["exception"]))
        elif event is LogEvent.JOB_INFO:
            if self._settings.dryrun:
                self._jobs[fields["jobid"]] = None
                self._say(f"{_named(fields['rule_name'], fields['wildcards'])}: {_reason(fields['reason'])}")
        elif event is LogEvent.SHELLCMD:
            if self._settings.printshellcmds:
                self._say(fields.get("shellcmd") or "")
        elif event is LogEvent.RUN_INFO:
            # In a dry run it comes twice.
            self._say(text if self._settings.dryrun and self._jobs else "")
        elif _STOPPING.match(text):
            if not self._stopping:
                self._say("stopping; jobs save what they have")
            self._stopping = True
        elif event not in _SILENT and not _NOISE.match(text):
            self._say(self._terminal.format(record))

    def _finish(self, number: int) -> None:
        job = self._jobs.get(number)
        if job is None:
            return
        self._finished.add(number)
        took = time.monotonic() - self._begun.get(number, self._start)
        for kind in _kinds(job):
            self._took[kind].append(took)
        left = sum(one.rule.name in CELLS for id_, one in self._jobs.items() if id_ not in self._finished)
        done, of, what = len(self._finished), len(self._jobs), "jobs"
        if left:
            done, of, what = self._cells - left, self._cells, "cells"
        name = _named(job.rule.name, job.wildcards_dict)
        self._say(f"[{done} of {of} {what}{self._time_left()}] {name}, {_duration(took)}")

    def _time_left(self) -> str:
        """How long the rest takes, by what jobs of its kind took; empty until a cell of each kind to come has ended."""
        now, work = time.monotonic(), 0.0
        for number, job in self._jobs.items():
            if number not in self._finished and number not in self._failed:
                known = next((self._took[kind] for kind in _kinds(job) if self._took[kind]), None)
                if known is None and job.rule.name in CELLS:
                    return ""
                work += max(fmean(known or [0.0]) - (now - self._begun.get(number, now)), 0.0)
        running = self._begun.keys() - self._finished
        busy = sum(sum(self._took[rule]) for rule in {job.rule.name for job in self._jobs.values()})
        at_once = (busy + sum(now - self._begun[number] for number in running)) / max(now - self._start, 1e-9)
        return f", about {_duration(work / max(at_once, 0.1))} left" if work else ""

    def _note_failure(self, fields: Mapping[str, Any]) -> None:
        number, said = fields["jobid"], _last_error(fields["log"])
        self._begun.pop(number, None)
        if said.startswith("stopped by"):
            self._stopping = True
            return
        name = _named(fields["rule_name"], self._jobs[number].wildcards_dict)
        if not said:
            self._silent.add(number)
        self._failed[number] = f"{name} ({', '.join(fields['log'])})\n  {said or _KILLED}"
        self._say(f"{'failed' if said else 'ended without a message'}: {name}")

    def _say(self, line: str) -> None:
        if line and self._terminal:
            # A terminal that was closed must not keep Snakemake from releasing its lock.
            with suppress(OSError):
                # One write a line: cells write to the same terminal, and may do so between a text and its end.
                self._terminal.stream.write(f"{line}\n")
                self._terminal.stream.flush()


def _kinds(job: Any) -> tuple[Any, ...]:
    """The groups of jobs that take about as long: those of the same method, then those of the same rule."""
    return (job.rule.name, job.wildcards_dict.get("method")), job.rule.name


def _named(rule: str, wildcards: Mapping[str, str]) -> str:
    words = [f"seed {value}" if key == "seed" else value for key, value in wildcards.items() if key != "preset"]
    changed = [wildcards["preset"]] if "@" in wildcards.get("preset", "") else []
    return " ".join([rule.removeprefix("learned_"), *words, *changed])


def _reason(text: str) -> str:
    """Why a job would run, without the names of its files."""
    changed = f"Updated input files: {layout.PLANNED}"
    parts = text.replace(changed, "Other settings or code, or files missing").split("; ")
    return "; ".join(part.split(": ")[0] for part in parts if part)


def _last_error(logs: Iterable[str]) -> str:
    """Return the last error of a job's log with what follows it; empty where it has none."""
    lines = [line for log in map(Path, logs) if log.exists() for line in log.read_text(errors="replace").splitlines()]
    errors = [number for number, line in enumerate(lines) if line.startswith(("error: ", "stopped by"))]
    return "\n  ".join(lines[errors[-1] :]) if errors else ""


def _error(text: str, kind: str) -> str:
    if kind == "LockException":
        return (
            f"error: another snakemake is at work in {Path.cwd()}; wait for its end. If none is, since it was killed, "
            "release its lock by `snakemake --unlock`"
        )
    if kind in ("PermissionError", "OSError"):
        return f"error: {text.strip().splitlines()[-1]}; make {Path.cwd()} writable, or free space, and try again"
    if "At least one job did not complete" in text or "CalledProcessError" in text:
        return ""
    if missing := re.search(r"No rule to produce (\S+)", text):
        return f"error: no rule makes {missing[1]}; `gmr --list` names the artefacts and presets there are"
    ours = re.search(r"WorkflowError:\n\s+(.+)", text)
    return f"error: {ours[1]}" if ours else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

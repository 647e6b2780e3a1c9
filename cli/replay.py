"""Replay: run the settings of a recording with the recording as its address, and compare the tables of both.

A recording is data: a replay asks no server, ignores recorded servers, and imports recorded code only on request.
Questions that the recording lacks come from ``GMR_DATA_DIR`` or the hub. Programs of the recorded models run in the
sandbox. Tables, figures, titles and settings that a replay shows are recomputed, never read from the recording. Other
code than that of the recording is no reason to compare less.
"""

import contextlib
import logging
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson
import pyarrow.parquet as pq

from analysis import registry
from analysis.finished_cells import answers_of, read_run
from cli import reports, signals
from gmr.enumeration import Selection, enumerate_steps
from harness.benchmarks import catalogue
from harness.benchmarks.prepare import FOREIGN
from harness.database import machine_folder
from harness.errors import UserError
from harness.files import temporary_prefix
from harness.llm.archive import data_of, odd_counts
from harness.llm.encoder import VectorCheck
from harness.llm.recordings import Recording, Recordings, opened
from harness.runner import cell as cells
from harness.runner import config, layout
from harness.runner.layout import POOL, Cell
from harness.runner.plan import plan, questions
from harness.runner.preset import resolve
from harness.runner.questions import OtherQuestionsError
from harness.runner.questions import write as write_questions
from harness.runner.results import read_rows
from harness.runner.run import Run

logger = logging.getLogger(__name__)

#: Folder of replayed reports, with one folder per preset.
REPLAYED = layout.REPORTS / "replayed"
# Maximum length of a shown value.
_SHOWN = 60
# Settings of a recording that a replay ignores.
_NOT_TAKEN = {"servers", "budget"}
_OWN_CODE = "code of the bundle's maker, which runs only with --code FILE"
# Entries of run.json that replies, questions and settings determine, whatever the code.
# `data` is compared without its source.
_CLAIMED = ("benchmark_title", "method_title", "simulated", "data", "backbones", "sampling")


class Replay(NamedTuple):
    """Result of a replay."""

    recording: Recording
    differences: dict[Cell | str, str]  # by replayed cell or enumeration; empty if its results are equal
    remarks: dict[str, str]  # what was not replayed or not checked, and why
    answers: str  # digest of the recomputed answers; empty if there are none
    asked: list[str] | None  # test questions that a training used; None if that was not checked
    vectors: VectorCheck


def replay(path: Path, *, further: Sequence[Path] = (), code: str | None = None, make_reports: bool = True) -> Replay:
    """Run the settings of a recording on its own replies, compare the results, and make reports in ``REPLAYED``.

    Args:
        path: Bundle, or folder of results.
        further: Recordings that answer what the first one lacks.
        code: File of the recording that declares methods of its maker, which are then imported.
        make_reports: Whether to make the reports.

    Raises:
        UserError: if the recording is damaged (see :func:`harness.llm.archive.extract`) or its preset is invalid.
    """
    target, vectors = Path.cwd() / REPLAYED, VectorCheck(most=float("inf"))
    recording = opened(path.absolute(), *filter(None, [code]))
    with data_of(path), _new_folder():
        run = _run_of(recording, further, code)
        recorded = {cell: folder for folder in recording.cells if (cell := layout.cell_of(folder))}
        own = [cell for cell in recorded if cell.method in run.entries and cell.benchmark in run.benchmarks]
        remarks = {str(cell): f"not replayed, since it needs {_OWN_CODE}" for cell in recorded if cell not in own}
        if recorded and (absent := {*run.cells(), *run.asked_again()} - recorded.keys()):
            remarks["not recorded"] = f"{len(absent)} cells of the settings, such as {min(absent)}"
        # A method that matches the cost of another one needs its cells.
        own.sort(key=lambda cell: run.entries[cell.method].matches is not None)
        trees = [path.parent for path in sorted(recording.results.glob("tree/*/run.json"))]
        jobs: dict[Cell | str, tuple[str, Path]] = {cell: (cell.benchmark, recorded[cell]) for cell in own}
        jobs |= {f"enumeration of {folder.name}": (folder.name, folder) for folder in trees}
        wrong = _prepare(run, [benchmark for benchmark, _ in jobs.values()], remarks)
        run = run.model_copy(update={"benchmarks": tuple(key for key in run.benchmarks if key not in wrong | remarks)})
        differences = {
            job: wrong.get(benchmark) or _rerun(run, recording, folder, vectors)
            for job, (benchmark, folder) in jobs.items()
            if benchmark not in remarks
        }
        done = [cell for cell in own if cell in differences]
        outputs = {cell: layout.cell(run.name, cell) for cell in done}
        infos = {cell: read_run(output) for cell, output in outputs.items() if (output / "run.json").exists()}
        if others := [cell for cell, info in infos.items() if _claims(recorded[cell]).get("code") != info.code]:
            remarks["code"] = f"{len(others)} of {len(infos)} cells were recorded by other code"
        remarks |= {f"tokens ({number})": odd for number, odd in enumerate(odd_counts(recording.logs()), 1)}
        asked = None
        try:
            asked = sorted({id_ for cell in done for id_ in _asked(run, cell)}) if done else None
        except UserError as error:
            remarks["audit"] = f"not checked: {error}"
        if make_reports and infos:
            _make_reports(run)
            shutil.copytree(layout.REPORTS, target, dirs_exist_ok=True)
        answers = answers_of(infos.values()) if infos else ""
        return Replay(recording, differences, remarks, answers, asked, vectors)


@contextlib.contextmanager
def _new_folder() -> Iterator[None]:
    """Work in a new folder, without the caches and tokens of this machine. The encoder's graph is its own and stays."""
    graphs = [*machine_folder().absolute().glob("*.onnx")]
    os.environ.pop("GMR_CACHE_DIR", None)
    os.environ["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"  # noqa: S105  no password
    with TemporaryDirectory(prefix=temporary_prefix("replay")) as work, contextlib.chdir(work):
        machine_folder().mkdir(parents=True)
        for graph in graphs:
            (machine_folder() / graph.name).symlink_to(graph)
        yield


def _run_of(recording: Recording, further: Sequence[Path], code: str | None) -> Run:
    """Resolve the settings of a recording. Recordings alone answer the calls, whatever the settings say."""
    settings = {key: value for key, value in recording.settings.items() if key not in _NOT_TAKEN}
    addresses = [str(path) for path in (recording.path, *further)]
    settings |= {"endpoints": "recorded", "recordings": addresses, "extra": None}
    if code is not None:
        # A folder of results is results/PRESET of the folder that has the code.
        file = (recording.root.parents[1] if recording.path.is_dir() else recording.root) / code
        if recording.settings.get("extra") != code or not file.is_file():
            raise UserError(f"{recording.path.name} has no methods in a file {code}")
        settings["extra"] = str(file)
    for path in further:
        opened(path.absolute())  # A table of outcomes declares its benchmarks.
    for noun, known in (("methods", config.methods(settings["extra"])), ("benchmarks", catalogue.keys())):
        settings[noun] = [name for name in settings.get(noun, ()) if name in known]
        if not settings[noun]:
            raise UserError(f"all {noun} of {recording.path.name} are {_OWN_CODE}")
    return resolve(recording.preset, settings)


def _prepare(run: Run, benchmarks: Iterable[str], remarks: dict[str, str]) -> dict[str, str]:
    """Write the questions. Return by benchmark how recorded questions are wrong; add those without any to remarks."""
    wrong: dict[str, str] = {}
    for benchmark in dict.fromkeys(benchmarks):
        try:
            write_questions(run, benchmark)
            if FOREIGN in layout.manifest(run.name, benchmark).read_text("utf-8"):
                remarks[f"questions of {benchmark}"] = "they come from the bundle and were not verified"
        except OtherQuestionsError as error:
            wrong[benchmark] = str(error)
        except UserError as error:
            remarks[benchmark] = f"not replayed: {error}"
    return wrong


def _rerun(run: Run, recording: Recording, folder: Path, vectors: VectorCheck) -> str:
    """Run a recorded cell or enumeration. Return how its results differ, or why there are none."""
    output = layout.RESULTS / run.name / folder.relative_to(recording.results)
    cell = layout.cell_of(output)
    try:
        with data_of(recording.path):
            if cell is not None:
                signals.run(cells.run(replace(plan(run, cell), vectors=vectors)))
            else:
                stated = _claims(folder)
                planned = replace(plan(run, Cell(stated["method"], folder.name, POOL, 0)), vectors=vectors)
                signals.run(enumerate_steps(planned, Selection(**stated.get("selection", {}))))
            return "; ".join(_differences(folder, output))
    except UserError as error:
        return str(error).removeprefix(f"{cell}: ")


def _claims(folder: Path) -> dict[str, Any]:
    """Load ``run.json``, without the source of the questions, which differs between machines."""
    stated: dict[str, Any] = orjson.loads((folder / "run.json").read_bytes())
    return {**stated, "data": {**stated["data"], "source": None}}


def _differences(recorded: Path, output: Path) -> Iterator[str]:
    """Describe how the tables and claims in a folder of results differ from the recorded ones."""
    before, after = ({path.name for path in folder.glob("*.parquet")} for folder in (recorded, output))
    for name in sorted(before | after):
        if name not in before & after:
            yield f"{name} was not {'recomputed' if name in before else 'recorded'}"
        elif difference := _difference(recorded / name, output / name):
            yield f"{name} {difference}"
    claimed, found = _claims(recorded), _claims(output)
    for key in _CLAIMED:
        if claimed.get(key) != found.get(key):
            was, now = (str(each.get(key))[:_SHOWN] for each in (claimed, found))
            yield f"run.json has {key} {was!r}, recomputed {now!r}"


def _difference(recorded: Path, output: Path) -> str:
    """Describe how a table differs from the recorded one. Empty if they are equal."""
    columns = [", ".join(f"{each.name} {each.type}" for each in pq.read_schema(path)) for path in (recorded, output)]
    if columns[0] != columns[1]:
        return f"has the columns {columns[1]}, recorded {columns[0]}"
    # Text is compared, since NaN is not equal to itself.
    rows: Iterator[tuple[dict[str, Any], ...]] = zip_longest(read_rows(recorded), read_rows(output), fillvalue={})
    unequal = [(was, now) for was, now in rows if str(was) != str(now)]
    if not unequal:
        return ""
    was, now = unequal[0]
    column = next(column for column in was or now if str(was.get(column)) != str(now.get(column)))
    values = [str(row.get(column, "no row"))[:_SHOWN] for row in (was, now)]
    first = next(iter((was or now).values()))
    return f"differs in {len(unequal)} rows, the first of {first}: {column} was {values[0]!r}, is {values[1]!r}"


def _asked(run: Run, cell: Cell) -> Iterator[str]:
    """Iterate over ids of test questions that equal a training question or, if none has them, are in its prompts.

    Case and white space are ignored. Raises UserError if a prompt was not recorded.
    """
    path = layout.cell(run.name, cell) / "training_calls.parquet"
    if not path.exists():
        return
    used = questions(run, cell.benchmark, cell.seed)
    train = [_text(item.question) for item in used.train]
    test = {item.id: _text(item.question) for item in used.test}
    yield from (id_ for id_, text in test.items() if text in train)
    test = {id_: text for id_, text in test.items() if not any(text in question for question in train)}
    with Recordings(run.recorded, cell) as recordings:
        for key in sorted({row["key"] for row in read_rows(path, ["key"])}):
            call = recordings.texts(key)
            if call is None or not call.messages:
                raise UserError(f"{cell}: the prompt of call {key[:12]} of its training is in no recording")
            prompt = _text(" ".join(message.content for message in call.messages))
            yield from (id_ for id_, text in test.items() if text in prompt)


def _text(text: str) -> str:
    return " ".join(text.lower().split())


def _make_reports(run: Run) -> None:
    """Make the main table, the page, and every artefact of which a cell exists. Some need a trained method."""
    artefacts = registry.of_run(run)
    keys = [artefact.key for artefact in artefacts if any(path.exists() for path in artefact.inputs(run))]
    for key in dict.fromkeys(["main_table", *keys, "page"]):
        try:
            reports.write(key, run)
        except UserError as error:
            logger.warning("%s was not made: %s", key, error)

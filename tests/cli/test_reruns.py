"""Jobs rerun after a change, and the output of a run, with fake jobs in a separate checkout."""

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.command import program
from tests.planning import Plans, copied_suite, planner, snakemake_of, stand_in

TARGETS = ["reports/smoke/he_cost.csv", "reports/smoke/ablation/no_write_gate.csv"]
CONFIG = ["--config", "methods=[single, gmr]", "backbones=[qwen-2.5-14B]"]
# Stands in for the real commands: a job leaves the files it has to leave, which say what it was made of, and is done.
# While there is a file `fails`, cells fail; if there is a file `dies`, the next cell is killed with its Snakemake.
COMMAND = """#!{python}
import os, signal, sys
from pathlib import Path
import orjson
from harness.files import read_yaml, write_atomically
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve

_, log, command, *words = sys.argv[1:]
shown = words.pop(0) if command in ("report", "check") else ""
given = dict(zip(words[::2], words[1::2]))
name = given["--preset"]
run = resolve(name, read_yaml(layout.settings(name)))

def make(*paths):
    for path in paths:
        write_atomically(Path(path), "made")

if command == "data":
    benchmark = given["--benchmark"]
    run.identity_of_data(benchmark).write()
    make(layout.items(name, benchmark))
    write_atomically(layout.manifest(name, benchmark), orjson.dumps({"checksum": "1", "split_checksum": "2"}))
elif command == "check":
    make(layout.served(name))
elif command == "report":
    from cli import reports
    reports.identity(shown, run).write()
    make(*(layout.report(name, shown + "." + kind) for kind in "tex csv md html pdf png svg".split()))
else:
    if Path("fails").exists():
        Path(log).write_text("at work\\nerror: no server\\n  start one")
        sys.exit(2)
    cell = Cell(given["--method"], given["--benchmark"], given["--backbone"], int(given["--seed"]))
    folder = layout.cell(name, cell)
    run.cell(cell).identity.write()
    make(*(folder / file for file in layout.cell_files(learned=True)))
if command == "cell" and Path("dies").exists():
    Path("dies").unlink()
    os.kill(int(os.environ["GMR_PARENT"].rpartition(":")[2]), signal.SIGKILL)
"""


def snakemake(house: Path, *words: str, targets: Sequence[str] = TARGETS, status: int = 0) -> str:
    """Run Snakemake in a checkout, whose modules it imports and whose ``gmr`` it calls; return its output."""
    command = [*snakemake_of(house), "--cores", "1", *targets, *CONFIG, *words]
    output = program(*command, folder=house, status=status, PYTHONPATH=str(house))
    assert "Traceback" not in output
    return "\n".join(line for line in output.splitlines() if not line.startswith("Using workflow"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkout whose jobs only pretend to work."""
    folder = copied_suite(tmp_path_factory.mktemp("house"))
    stand_in(folder, COMMAND.replace("{python}", sys.executable))
    return folder


@pytest.fixture(scope="module")
def made(house: Path) -> str:
    """Return the output of the run that made the targets, after one failed and one was killed."""
    (house / "fails").touch()
    failed = snakemake(house, "endpoints=served", targets=TARGETS[:1], status=1)
    told = [f"failed: cell {cell} seed 0 (" for cell in ("single humaneval qwen-2.5-14B", "gmr humaneval pool")]
    assert [failed.count(line) for line in told] == [1, 1]
    cause = "/seed0.log)\n  error: no server\n    start one\n"
    assert failed.count(cause) == failed.count("no server") == 1
    assert failed.endswith("\nfailed jobs: 2; all else is kept: fix this and give the command again")
    (house / "fails").unlink()
    (house / "dies").touch()
    snakemake(house, status=-signal.SIGKILL)
    holder = house / ".snakemake" / "locks" / "holder"
    here, process, begun = holder.read_text().split(maxsplit=2)
    holder.write_text(f"elsewhere {process} {begun}")
    program(sys.executable, "-c", "from cli import signals; signals.release_dead_lock()", folder=house)
    assert holder.exists(), "on another host, it may be alive"
    holder.write_text(f"{here} {process} {begun}")
    released, *lines = snakemake(house).splitlines()
    assert released == f"released the lock of process {process}, begun {begun}, which was killed"
    return "\n".join(lines)


def test_a_run_says_what_is_to_do_what_is_done_and_where_it_is(made: str) -> None:
    first, departure, *jobs, done, files, following = made.splitlines()
    assert departure.startswith("tables of preset smoke do not show its methods cot, ")
    assert first == "jobs to do: 7; cells: 5, 4 of them trained first"
    line = r"\[(\d) of 5 cells(?:, about 0:\d\d:\d\d left)?\] \w+.*, 0:\d\d:\d\d"
    progress = [match[1] for job in jobs if (match := re.fullmatch(line, job))]
    assert len(progress) == len(jobs) == 7
    assert progress[-1] == "5"
    # Once a cell of each kind that is to come has ended: one that learns, and the one that does not.
    cells = [job for job in jobs if "] cell " in job]
    (alone,) = (number for number, job in enumerate(cells) if "single" in job)
    assert [" left]" in job for job in cells[:-1]] == [number >= max(alone, 1) for number in range(len(cells) - 1)]
    assert re.fullmatch(r"done in \d:\d\d:\d\d", done)
    assert files == f"made: {', '.join(sorted(str(Path(name).with_suffix('.*')) for name in TARGETS))}"
    assert following == "next: gmr report page --preset smoke"


@contextmanager
def changed(path: Path, old: str, new: str) -> Iterator[None]:
    """Replace a text in a file until the end of the block."""
    text, state = path.read_text(), path.stat()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(text)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def written(house: Path) -> dict[Path, float]:
    return {path: path.stat().st_mtime for path in house.rglob("*") if ".snakemake" not in path.parts}


Reruns = Callable[..., set[str]]


@pytest.fixture(scope="module")
def plan(house: Path, made: str) -> Iterator[Plans]:
    with planner(house) as plan:
        yield plan


@pytest.fixture(scope="module")
def reruns(house: Path, plan: Plans) -> Reruns:
    def planned(*words: str) -> set[str]:
        before = written(house)
        ((status, output),) = plan([["--cores", "1", *TARGETS, *CONFIG, *words]])
        assert status == 0, output
        assert written(house) == before, "a plan writes nothing"
        lines = output.split("Job stats")[0].splitlines()
        return {
            line.split(": ")[0] for line in lines if ": " in line and not line.startswith(("jobs to do", "Rules with"))
        }

    return planned


TABLES = {"table he_cost", "table ablation/no_write_gate"}
CELLS = {f"cell gmr_no_write_gate {benchmark} pool seed 0" for benchmark in ("gsm_hard", "humaneval")}
ENTRY = "title: GMR w/o write gate, config: {write_gate: false"
LATER = ("_NAMED = 12", "_NAMED = 12\nLATER = True")
# File, text, text in its place; and the jobs that run for it, all if None.
CHANGES: list[Any] = [
    ("gmr/networks.py", "LATENT = 128", "LATENT = 128  # coordinates\n\n# Nothing else has changed.", set()),
    ("config/methods.yaml", ENTRY, f"{ENTRY}, lr: 0.02", CELLS | {"table ablation/no_write_gate"}),
    ("analysis/paper/variants.py", "\ndef build", "\nLATER = True\n\n\ndef build", TABLES),
    ("config/published.yaml", "# The numbers", "# All numbers", TABLES),
    ("results/smoke/data/humaneval.json", '"1"', '"3"', None),
    ("config/backbones.yaml", "parameters_b: 14", "parameters_b: 15", None),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change[0])
def test_a_change_makes_itself_again_and_what_shows_it(house: Path, reruns: Reruns, change: Any) -> None:
    file, old, new, expected = change
    with changed(house / file, old, new):
        jobs = reruns()
    made = {job for job in jobs if job.startswith(("cell ", "table "))}
    assert made == expected if expected is not None else len(made) == 7


def test_settings_of_the_run_count_and_its_pace_does_not(house: Path, reruns: Reruns) -> None:
    # So does a check of servers by hand.
    (house / "results/smoke/served.json").touch()
    assert reruns("in_flight=3", "budget={cost: 9}") == set()
    everything = reruns("limit={test: 5}")
    assert {"cell single humaneval qwen-2.5-14B seed 0", *TABLES} < everything
    assert sum(job.startswith("cell ") for job in everything) == 5


def test_neither_other_times_of_files_nor_a_lost_memory_hides_a_change(house: Path, reruns: Reruns) -> None:
    """In a copy, every file may be older than what it was made from."""
    shutil.rmtree(house / ".snakemake")
    files = [path for name in ("results", "reports") for path in (house / name).rglob("*") if path.is_file()]
    times = {path: path.stat().st_mtime_ns for path in files}
    for age, path in enumerate(sorted(files, key=times.__getitem__)):
        os.utime(path, (10**9 - age, 10**9 - age))
    with changed(house / "harness" / "errors.py", *LATER):
        assert len([job for job in reruns() if job.startswith(("cell ", "table "))]) == 7
    for path, time_ns in times.items():
        os.utime(path, ns=(time_ns, time_ns))
    assert reruns() == set()


def test_a_report_of_the_preset_is_a_link_and_never_takes_the_place_of_a_file(house: Path, plan: Plans) -> None:
    link, path = house / "reports/he_cost.csv", house / "reports/ablation/no_write_gate.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("a year's work")
    link.symlink_to("embedded/he_cost.csv")
    assert "link he_cost.csv, 0:00:" in snakemake(house, "preset=smoke", targets=["reports/he_cost.csv"])
    assert link.readlink() == Path("smoke/he_cost.csv")
    words = ["--cores", "1", *CONFIG, "preset=smoke"]
    targets = ("reports/ablation/no_write_gate.csv", "reports/he_cost.csv")
    (status, refused), (_, done) = plan([[target, *words] for target in targets])
    assert status != 0
    assert "is not a link; move it away" in refused
    assert path.read_text() == "a year's work"
    assert "Nothing to be done" in done

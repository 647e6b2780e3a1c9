"""The command line: help, one-line errors, settings from files, the terminal's lines, and Snakemake's plans."""

import io
import logging
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from snakemake_interface_logger_plugins.common import LogEvent

from analysis.registry import all_cells, artefacts
from cli import main, signals
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.client import BudgetError
from harness.runner import layout
from harness.runner.preset import resolve
from harness.simulator.endpoint import CODE
from snakemake_logger_plugin_gmr import LogHandler
from tests.command import gmr, program
from tests.planning import planner

CELL = ["cell", "--preset", "smoke", "--method", "cot", "--benchmark", "gsm_hard", "--backbone", "qwen-2.5-14B"]


pytestmark = pytest.mark.usefixtures("folder")


def test_whatever_has_a_name_is_listed() -> None:
    listed = gmr("--list").output
    for name in ("embedded", "gmr_no_halting", "gsm_hard", "qwen-2.5-14B", "ablation/no_write_gate"):
        assert re.search(rf"^  {name} +\S", listed, re.MULTILINE), name
    assert re.fullmatch(r"gmr \d+\.\d+\.\d+\n", gmr("--version").output)


def test_help_begins_with_show_names_no_job_and_loads_no_library_that_takes_its_time() -> None:
    commands = re.findall(r"^  (\w+)  ", gmr("--help").output.partition("Commands:")[2], re.MULTILINE)
    assert " ".join(commands) == "show report bundle replay audit retry new test check forecast enumerate"
    loaded = program(sys.executable, "-c", "import sys, cli.main; print(*sys.modules)", folder=ROOT).split()
    assert {"pydantic", "pandas", "numpy", "torch", "asyncio", "yaml", "rich"} & {*loaded} == set()


def test_the_run_of_the_folder_is_that_of_every_command(folder: Path) -> None:
    with pytest.raises(UserError, match="of preset embedded is not finished"):
        gmr("show", "gmr", "gsm_hard")
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text("preset: smoke")
    with pytest.raises(UserError, match="of preset smoke is not finished"):
        gmr("show", "gmr", "gsm_hard")
    with pytest.raises(UserError, match=r"results/smoke/data/gsm_hard\.json cannot be read"):
        gmr("cell", *CELL[3:])


NOT_BEGUN = "has no finished cell here; make it with `snakemake --cores all reports/paper/index.html`"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*CELL, "--set", "limit"], "is not KEY=YAML"),
        (["bundle", "x.zip", "--preset", "paper"], NOT_BEGUN),
        (["run"], "unknown command 'run'; known: audit, bundle, check, enumerate, "),
        (["new", "method", "my-router"], "use `gmr new method my_router`"),
        ([*CELL, "--set", "mehtods=[cot]"], "keys given for this run: unknown key 'mehtods'; did you mean 'methods'?"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        gmr(*words)
    assert "\n" not in str(refused.value)


def status_of(start: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a program as a job, in this process, and return its status."""
    for name in ("end_with_parent", "stop_cleanly"):
        monkeypatch.setattr(main, name, lambda: None)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    with pytest.raises(SystemExit) as ended:
        main.main(start)
    return ended.value.code  # type: ignore[return-value]


def test_an_exception_of_a_method_is_one_line_with_its_place_and_the_log_has_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "faulty.py").write_text("def solve():\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [caplog.handler, logging.FileHandler("job.log")])
    assert status_of(import_module("faulty").solve, monkeypatch) == 1
    line, _ = caplog.records[-1].getMessage().splitlines()
    assert line == "error: ZeroDivisionError: division by zero (faulty.py, line 2)"
    assert Path("job.log").read_text().startswith("Traceback (most recent call last):")


def test_a_spent_budget_ends_the_command_with_one_line_and_a_snakemake_of_this_host_begins_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kill = Mock()
    monkeypatch.setattr(os, "kill", kill)
    for parent in ("", "elsewhere:4242", f"{socket.gethostname()}:4242"):
        kill.assert_not_called()
        monkeypatch.setenv(signals.PARENT, parent)
        assert status_of(Mock(side_effect=BudgetError("the budget is spent")), monkeypatch) == 2
    kill.assert_called_once_with(4242, signal.SIGTERM)
    assert {record.getMessage() for record in caplog.records} == {"error: the budget is spent"}


def test_other_places_than_a_checkout_of_its_own_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "results").rmdir()
    with pytest.raises(UserError, match="no Snakefile and no results here; run the command in"):
        gmr(*CELL)
    for name in ("Snakefile", "cli/main.py", "harness/files.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert status_of(Mock(), monkeypatch) == 2
    assert f"error: this is the gmr of {ROOT}, and {tmp_path.resolve()} is another checkout" in caplog.text
    monkeypatch.setattr(main, "ROOT", tmp_path)
    assert status_of(Mock(), monkeypatch) == 2
    assert "pip install -e ." in caplog.text


# The plugin for the terminal of Snakemake.

STOPPED = "stopped; what is finished is kept, and the same command resumes"


def record(handler: LogHandler, event: LogEvent | None, text: str = "", level: int = logging.INFO, **of: Any) -> None:
    plain = logging.LogRecord("snakemake", level, "", 0, text, None, None)
    handler.emit(logging.makeLogRecord({**plain.__dict__, "event": event, **of}))


def test_what_is_stopped_or_locked_is_one_line_and_a_job_that_a_stopped_run_takes_with_it_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    settings: Any = SimpleNamespace(dryrun=False)
    handler = LogHandler(settings, None)
    handler._stream = printed = io.StringIO()
    record(handler, None, "Building DAG of jobs...")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    record(handler, LogEvent.ERROR, exception="LockException")
    record(handler, LogEvent.RUN_INFO, stats={"cell": 3, "total": 3})
    for number, ends in enumerate(("", "stopped by SIGTERM; 7 finished calls are kept\n")):
        named = {"jobid": number, "rule_name": "cell", "wildcards": {"method": f"m{number}"}}
        record(handler, LogEvent.JOB_INFO, **named, output=[], reason="")
        log = tmp_path / f"{number}.log"
        log.write_text(f"cot gsm_hard qwen-2.5-14B seed 0: 7/16 questions\n{ends}")
        record(handler, LogEvent.JOB_ERROR, **named, log=[str(log)])
    record(handler, None, "Exiting because a job execution failed.", logging.ERROR)
    record(handler, LogEvent.ERROR, "At least one job did not complete successfully.", exception="WorkflowError")
    plan, locked, _, failed, cause, *end = printed.getvalue().splitlines()
    assert plan == STOPPED
    assert locked.startswith("error: another snakemake is at work in ")
    assert locked.endswith("; if it was killed: `snakemake --unlock`")
    assert failed == f"failed: cell m0 ({tmp_path / '0.log'})"
    assert cause.strip().startswith("no message in its log; it may have been killed")
    assert end == [STOPPED]


# The jobs planned for a target, and the settings of profiles and rules.

EMBEDDED = resolve("embedded")
# Targets and settings, and the jobs that run for them.
PLANS: Mapping[str, tuple[str, str]] = {
    "main table": ("reports/main_table.tex", "data 5, cell 75, learned_cell 30, table 1, link 1"),
    "real main table": ("reports/paper/main_table.tex", "data 5, servers 1, cell 75, learned_cell 90, table 1"),
    "one ablation": (
        "reports/ablation/no_write_gate.tex --config preset=smoke",
        "data 2, learned_cell 4, table 1, link 1",
    ),
    "a cell that meets the cost of another": (
        "results/smoke/cells/self_consistency/gsm_hard/pool/seed0/run.json",
        "data 2, learned_cell 2",
    ),
    "settings that the default preset would refuse": (
        "reports/recorded/main_table.md --config endpoints=[recorded,served]",
        "data 4, servers 1, cell 16, learned_cell 8, table 1",
    ),
}
REFUSED: Mapping[str, str] = {
    "Not a directory: 'results'": "--directory broken reports/smoke/main_table.tex",
    "depth cannot be made of preset smoke, which has no benchmark it is made from": "reports/smoke/depth.png",
    "No rule to produce reports/smokee/main_table.tex; did you mean 'reports/smoke/": "reports/smokee/main_table.tex",
    "unknown preset 'xyz'; known: cpu_server, embedded, ": "--config preset=xyz",
    """preset "['smoke']": String should match pattern""": "--config preset=[smoke]",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Status and output of every plan, made by one process outside of a checkout."""
    commands = {**{name: words for name, (words, _) in PLANS.items()}, "embedded": "", **REFUSED}
    folder = tmp_path_factory.mktemp("plans")
    (folder / "broken").mkdir()
    (folder / "broken" / "results").touch()
    with planner(folder) as plan:
        planned = plan([["-s", str(ROOT / "Snakefile"), *words.split()] for words in commands.values()])
    return dict(zip(commands, planned, strict=True))


def jobs(outcome: tuple[int, str]) -> dict[str, int]:
    status, text = outcome
    assert status == 0, text
    table = text.split("Job stats:")[1].split("\n\n")[0]
    numbers = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
    assert numbers.pop("total") == sum(numbers.values())
    return numbers


@pytest.mark.parametrize("name", PLANS)
def test_a_target_runs_what_it_is_made_from_and_nothing_else(said: dict[str, tuple[int, str]], name: str) -> None:
    expected = dict(part.split() for part in PLANS[name][1].split(", "))
    assert jobs(said[name]) == {rule: int(number) for rule, number in expected.items()}


def test_everything_is_every_artefact_with_the_claims(said: dict[str, tuple[int, str]]) -> None:
    numbers = jobs(said["embedded"])
    kinds = Counter(
        artefact.kind for artefact in artefacts().values() if not (artefact.optional or artefact.lacking(EMBEDDED))
    )
    assert (numbers["table"], numbers["figure"]) == (kinds["table"], kinds["figure"])
    assert numbers["report"] == 1
    distinct = {layout.cell("embedded", cell) for cell in {*all_cells(EMBEDDED), *EMBEDDED.cells()}}
    assert numbers["cell"] + numbers["learned_cell"] == len(distinct)


@pytest.mark.parametrize("message", REFUSED)
def test_a_mistake_in_a_plan_is_one_line(said: dict[str, tuple[int, str]], message: str) -> None:
    status, text = said[message]
    *_, last = text.splitlines()
    assert (bool(status), last.startswith("error: "), "Traceback" in text) == (True, True, False)
    assert message in last


# Imports of the simulator that change no reply: requests, how many run at once, declarations, paths, errors.
NO_SOURCE = {"concurrency", "errors", "files", "fingerprint", "llm", "runner"}


def test_what_a_simulated_reply_is_made_of_makes_a_new_revision() -> None:
    text = "".join(path.read_text() for path in (ROOT / "harness" / "simulator").glob("*.py"))
    made_of = {*re.findall(r"from harness\.(\w+)", text)} - NO_SOURCE
    assert {"simulator", "benchmarks", "agents"} <= made_of
    for part in made_of:
        assert {f"harness/{part}", f"harness/{part}.py"} & {*CODE}, part


def test_profiles_name_options_and_rules_that_exist() -> None:
    from snakemake.cli import get_argument_parser

    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra `slurm` is not installed")
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    options = get_argument_parser()._option_string_actions
    for path in (ROOT / "profiles").glob("*/config.yaml"):
        profile = yaml.safe_load(path.read_text())
        assert [name for name in profile if f"--{name}" not in options] == []
        named = {rule for setting in ("set-threads", "set-resources") for rule in profile.get(setting, {})}
        assert all(f"rule {rule}:" in rules for rule in named)

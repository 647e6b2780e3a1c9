"""Behaviour shared by all commands: help, one-line errors, settings from files, the checkout."""

import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock

import orjson
import pytest

from cli import main
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.budget import BudgetError
from harness.runner import layout
from harness.runner.layout import Cell
from tests.command import gmr, program, snakemake
from tests.planning import checkout

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


def test_a_spent_budget_ends_the_command_with_one_line_and_begins_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop_scheduling = Mock()
    monkeypatch.setattr(main, "stop_scheduling", stop_scheduling)
    assert status_of(Mock(side_effect=BudgetError("the budget is spent")), monkeypatch) == 2
    stop_scheduling.assert_called_once_with()
    assert [record.getMessage() for record in caplog.records] == ["error: the budget is spent"]


LOADED = "import sys\nfrom cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)"


def test_a_printed_command_repeats_its_job_from_a_bare_shell_and_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    place = checkout(tmp_path / "place")
    run = layout.cell("smoke", Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)) / "run.json"
    given = ["limit={test: 3}", "benchmarks=[gsm_hard]", "description=some words"]
    printed = snakemake("-p", str(run), "--config", "preset=smoke", *given, folder=place)
    (command,) = re.findall(r"^gmr --log .* cell .*$", printed, re.MULTILINE)
    first = (place / run).read_bytes()
    assert orjson.loads(first)["data"]["n_test"] == 3
    shutil.rmtree(place / run.parent)
    bare = {"HOME": str(Path.home()), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    words = ["env", "-i", *map("=".join, bare.items()), sys.executable, "-c", LOADED, *shlex.split(command)[1:]]
    loaded = {*program(*words, folder=place).split()}
    assert (place / run).read_bytes() == first
    # A cell of simulated backbones loads no client and nothing that learning or reports need.
    assert {"openai", "aiohttp", "httpx2", "tenacity", "torch", "onnxruntime", "scipy", "matplotlib"} & {
        *loaded
    } == set()


def test_other_places_than_a_checkout_of_its_own_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results").rmdir()
    with pytest.raises(UserError, match="no Snakefile and no results here; run the command in"):
        gmr(*CELL)
    second = tmp_path / "second"
    for name in ("Snakefile", "cli/main.py", "harness/files.py"):
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        (second / name).touch()

    def error(root: Path) -> str:
        start = f"import sys; sys.path.insert(0, {str(root)!r}); from cli.main import main; main()"
        return program(sys.executable, "-c", start, "show", "gmr", "gsm_hard", folder=second, status=2)

    line = f"error: this is the gmr of {ROOT}, and {second.resolve()} is another checkout"
    assert error(ROOT).startswith(line)
    installed = tmp_path / "installed"
    for name in ("cli", "harness"):
        shutil.copytree(ROOT / name, installed / name)
    assert "pip install -e ." in error(installed)

"""What all commands share: their list, one line for a mistake, settings from files, the checkout; simulate, sandbox."""

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import orjson
import pytest
from typer.main import get_command

from cli import main
from cli.main import app
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.budget import BudgetError
from harness.runner import layout
from harness.runner.config import Cell
from tests.command import gmr
from tests.planning import checkout

CELL = ["cell", "--preset", "smoke", "--method", "cot", "--benchmark", "gsm_hard", "--backbone", "qwen-2.5-14B"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_says_what_it_does_and_has_a_place_on_the_page() -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    names = [name for name, command in commands.items() if not command.hidden]
    assert "show" in names
    for name in names:
        assert f" {name} " in gmr(name, "--help").output
        assert re.search(rf"`gmr {name}\b", page), name
    assert gmr("shwo").exit_code == 2


def test_whatever_has_a_name_is_listed() -> None:
    listed = gmr("--list").output
    for name in ("embedded", "gmr_no_halting", "gsm_hard", "qwen-2.5-14B", "ablation/no_write_gate"):
        assert re.search(rf"^  {name} +\S", listed, re.MULTILINE), name
    assert re.fullmatch(r"gmr \d+\.\d+\.\d+\n", gmr("--version").output)


def test_help_loads_no_library_that_takes_its_time() -> None:
    program = "import sys, cli.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"pydantic", "pandas", "numpy", "torch", "asyncio", "yaml", "rich"} & {*loaded.stdout.split()} == set()


def test_the_preset_of_the_folder_is_that_of_every_command(folder: Path) -> None:
    with pytest.raises(UserError, match="of preset embedded is not finished"):
        gmr("show", "gmr", "gsm_hard")
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text("preset: smoke")
    with pytest.raises(UserError, match="of preset smoke is not finished"):
        gmr("show", "gmr", "gsm_hard")
    with pytest.raises(UserError, match=r"results/smoke/data/gsm_hard\.json cannot be read"):
        gmr("cell", *CELL[3:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "limit"], "is neither KEY=YAML"),
        (["--set", "@results/smoke/nothing.yaml"], "results/smoke/nothing.yaml: cannot be read"),
        (["--set", "@/dev/null"], "/dev/null holds no keys of a preset"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as refused:
        gmr(*CELL, *words)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("words", [["bundle", "x.zip"], ["retry"]])
def test_a_run_that_was_never_begun_is_begun_by_a_command(words: list[str]) -> None:
    cure = "preset paper has not been run here; make it with `snakemake --cores all all --config preset=paper`"
    with pytest.raises(UserError, match=f"^{cure}$"):
        gmr(*words, "--preset", "paper")


def test_an_exception_of_a_method_is_its_lines_and_the_log_has_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "faulty.py").write_text("def solve():\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("end_with_parent", "stop_cleanly"):
        monkeypatch.setattr(main, name, lambda: None)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [caplog.handler, logging.FileHandler("job.log")])
    with pytest.raises(SystemExit) as ended:
        main.main(import_module("faulty").solve)
    lines = caplog.records[-1].getMessage().splitlines()
    assert ended.value.code == 1
    assert lines[:3] == [
        "error: ZeroDivisionError: division by zero",
        f'  File "{tmp_path / "faulty.py"}", line 2, in solve',
        "    return 1 / 0",
    ]
    assert len(lines) <= 5
    assert Path("job.log").read_text().startswith("Traceback (most recent call last):")


def test_a_command_given_elsewhere_says_where_it_belongs(folder: Path) -> None:
    (folder / "results").rmdir()
    with pytest.raises(UserError, match="no Snakefile and no results here; give the command in"):
        gmr(*CELL)


def test_a_spent_budget_ends_the_command_with_one_line_and_begins_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def spent() -> None:
        raise BudgetError("the budget is spent")

    calls: list[str] = []
    for name in ("end_with_parent", "stop_cleanly"):
        monkeypatch.setattr(main, name, lambda: None)
    monkeypatch.setattr(main, "stop_scheduling", lambda: calls.append("snakemake"))
    monkeypatch.setattr(logging, "raiseExceptions", True)
    with pytest.raises(SystemExit) as ended:
        main.main(spent)
    assert (ended.value.code, calls) == (2, ["snakemake"])
    assert [record.getMessage() for record in caplog.records] == ["error: the budget is spent"]


LOADED = "import sys\nfrom cli.main import main\ntry:\n    main()\nfinally:\n    print(*sys.modules)"


def test_a_printed_command_repeats_its_job_from_a_bare_shell_and_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    place = checkout(tmp_path / "place")
    run = layout.cell("smoke", Cell("cot", "gsm_hard", "qwen-2.5-14B", 0)) / "run.json"
    given = ["limit={test: 3}", "benchmarks=[gsm_hard]", "description=some words"]
    words = ["-m", "snakemake", "-p", "--cores", "1", str(run), "--config", "preset=smoke", *given]
    ended = subprocess.run([sys.executable, *words], cwd=place, capture_output=True, text=True, check=True)
    (command,) = re.findall(r"^gmr --log .* cell .*$", ended.stdout + ended.stderr, re.MULTILINE)
    first = (place / run).read_bytes()
    assert orjson.loads(first)["data"]["n_test"] == 3
    shutil.rmtree(place / run.parent)
    bare = {"HOME": str(Path.home()), "PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    again = [sys.executable, "-c", LOADED, *shlex.split(command)[1:]]
    ended = subprocess.run(again, cwd=place, env=bare, check=True, capture_output=True, text=True)
    assert (place / run).read_bytes() == first
    # A cell of simulated backbones loads no client and nothing that learning or reports need.
    other = {"openai", "aiohttp", "httpx2", "tenacity", "torch", "onnxruntime", "scipy", "matplotlib"}
    assert other & {*ended.stdout.split()} == set()


def test_another_checkout_and_an_installation_without_one_are_refused(tmp_path: Path) -> None:
    second = tmp_path / "second"
    for name in ("Snakefile", "cli/main.py", "harness/files.py"):
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        (second / name).touch()

    def error(root: Path) -> str:
        program = f"import sys; sys.path.insert(0, {str(root)!r}); from cli.main import main; main()"
        words = [sys.executable, "-c", program, "show", "gmr", "gsm_hard"]
        return subprocess.run(words, cwd=second, capture_output=True, text=True, check=False).stderr

    line = f"error: this is the gmr of {ROOT}, and {second.resolve()} is another checkout"
    assert error(ROOT).startswith(line)
    installed = tmp_path / "installed"
    for name in ("cli", "harness"):
        shutil.copytree(ROOT / name, installed / name)
    assert "pip install -e ." in error(installed)


def test_servers_are_simulated_on_this_machine_alone_and_of_presets_that_have_them() -> None:
    assert "[default: 127.0.0.1]" in gmr("simulate", "--help").output
    with pytest.raises(UserError, match="preset paper asks real servers"):
        gmr("simulate", "--preset", "paper")


@pytest.mark.parametrize(
    ("refusals", "status", "lines"),
    [
        ({}, 0, ["full      works", "rlimit    works"]),
        ({"full": "unshare: no"}, 1, ["full      does not work: unshare: no", "rlimit    works"]),
    ],
)
def test_the_sandbox_says_what_works_here(
    monkeypatch: pytest.MonkeyPatch, refusals: dict[str, str], status: int, lines: list[str]
) -> None:
    monkeypatch.setattr("harness.sandbox.pool.refusal", lambda level: refusals.get(level, ""))
    found = gmr("sandbox")
    assert (found.exit_code, found.stdout.splitlines()) == (status, lines)

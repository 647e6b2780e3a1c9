import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.files import ROOT
from harness.simulator.endpoint import _CODE

SNAKEMAKE = [sys.executable, "-m", "snakemake"]


def snakemake(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SNAKEMAKE, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The DAG and its configuration without any results."""
    for name in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def jobs(text: str) -> dict[str, int]:
    table = text.split("Job stats:")[1].split("\n\n")[0]
    return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}


def test_the_main_table_is_one_job_a_cell(checkout: Path) -> None:
    planned = snakemake("-n", "--cores", "2", "reports/main_table.tex", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    assert jobs(planned.stdout + planned.stderr) == {
        "data": 5,
        "world": 1,
        "cell": 75,
        "learned_cell": 30,
        "main_table": 1,
        "run_name": 1,
        "published_copy": 1,
        "total": 114,
    }


@pytest.mark.parametrize(("methods", "searched"), [("[single, aflow]", 1), ("[single]", None)])
def test_everything_has_the_report_on_searches_where_there_are_any(
    checkout: Path, methods: str, searched: int | None
) -> None:
    planned = snakemake("-n", "--config", f"methods={methods}", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    found = jobs(planned.stdout + planned.stderr)
    assert (found["costs"], found.get("search_history")) == (1, searched)


@pytest.mark.parametrize("file", ["trained.safetensors", "training_calls.parquet", "run.json"])
def test_a_cell_that_learns_leaves_its_checkpoint_and_its_training(checkout: Path, file: str) -> None:
    planned = snakemake("-n", f"results/smoke/cells/gmr/gsm_hard/pool/seed0/{file}", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    assert jobs(planned.stdout + planned.stderr) == {"data": 2, "world": 1, "learned_cell": 1, "total": 4}


def test_a_cell_that_does_not_learn_has_no_checkpoint(checkout: Path) -> None:
    asked = "results/smoke/cells/cot/gsm_hard/qwen-2.5-14B/seed0/trained.safetensors"
    refused = snakemake("-n", asked, folder=checkout)
    assert refused.returncode != 0
    assert "MissingRuleException" in refused.stdout + refused.stderr


def test_real_backbones_need_no_simulated_world(checkout: Path) -> None:
    planned = snakemake("-n", "reports/paper/main_table.tex", folder=checkout)
    assert jobs(planned.stdout + planned.stderr) == {
        "data": 5,
        "cell": 75,
        "learned_cell": 90,
        "main_table": 1,
        "total": 171,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reports/nope/main_table.tex"], "error: unknown preset 'nope'; known: embedded, "),
        (["--config", "preset=embeded"], "error: unknown preset 'embeded'; did you mean 'embedded'?"),
        (["--config", "limits={test: 3}"], "did you mean 'limit'?"),
        (["--config", "backbones=[qwen-2.5-14b]"], "error: unknown backbone 'qwen-2.5-14b'; did you mean"),
        (["--config", "methods=[cto]"], "error: unknown method 'cto'; did you mean 'cot'?"),
        (["--config", "benchmarks=[maths]"], "error: unknown benchmark 'maths'; did you mean 'math'?"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(words: list[str], message: str) -> None:
    ended = snakemake("-n", *words)
    assert ended.returncode != 0
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


# What the simulator imports that cannot change a world or a reply: paths, errors, reading of YAML.
NO_SOURCE = {"config", "errors", "files", "layout", "yaml_files"}


def imported_by_the_simulator() -> set[str]:
    text = "".join(path.read_text() for path in (ROOT / "harness" / "simulator").glob("*.py"))
    below = re.findall(r"from harness\.(\w+)", text)
    beside = re.findall(r"from harness import ([\w, ]+)", text)
    return {*below, *(name.strip() for names in beside for name in names.split(","))} - NO_SOURCE


def test_a_change_of_what_the_simulated_world_is_made_of_makes_a_new_one() -> None:
    rule = (ROOT / "workflow" / "rules" / "data.smk").read_text().split("rule world")[1]
    # Roles and prompts are for reading requests, backbones for their declaration in config/.
    made_of = imported_by_the_simulator() - {"roles", "prompts", "backbones"}
    assert {"simulator", "benchmarks", "draws"} <= made_of
    for room in made_of:
        assert f'"harness/{room}"' in rule or f'"harness/{room}.py"' in rule, room
    for source in ("config/backbones.yaml", "config/simulator.yaml"):
        assert f'"{source}"' in rule


def test_a_change_of_what_a_simulated_reply_is_made_of_makes_a_new_revision() -> None:
    # The sandbox tries programs when the world is made, and prices and sizes of backbones stand in the world.
    for room in imported_by_the_simulator() - {"sandbox", "backbones"}:
        assert room in _CODE or f"{room}.py" in _CODE, room


def test_the_name_of_the_run_is_true_of_every_copy_beside_it(checkout: Path) -> None:
    (checkout / "reports" / "smoke").mkdir(parents=True)
    (checkout / "reports" / "embedded").mkdir()
    for preset in ("smoke", "embedded"):
        for kind in ("csv", "md"):
            (checkout / "reports" / preset / f"notes.{kind}").write_text(preset)
    copies = ["reports/notes.csv", "reports/notes.md"]
    assert snakemake("--cores", "1", *copies, "--config", "preset=smoke", folder=checkout).returncode == 0
    assert (checkout / "reports" / "notes.csv").read_text() == "smoke"
    assert snakemake("--cores", "1", "reports/notes.md", folder=checkout).returncode == 0
    assert (checkout / "reports" / "RUN").read_text().startswith("embedded: ")
    assert (checkout / "reports" / "notes.md").read_text() == "embedded"
    assert not (checkout / "reports" / "notes.csv").exists()


def test_a_lock_left_behind_is_released_as_the_readme_says(checkout: Path) -> None:
    assert snakemake("--unlock", folder=checkout).returncode == 0


def test_lint_is_clean() -> None:
    linted = snakemake("--lint")
    assert "good condition" in linted.stdout + linted.stderr


def test_the_rules_are_formatted() -> None:
    formatted = subprocess.run(
        [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert formatted.returncode == 0, formatted.stderr

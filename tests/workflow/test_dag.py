import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from analysis.registry import artefacts, cells_of
from analysis.sensitivity import plan
from harness.files import ROOT
from harness.runner import config, layout
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
        "table": 1,
        "run_name": 1,
        "published_copy": 1,
        "total": 114,
    }


def test_everything_is_every_artefact_with_the_claims_and_the_searches(checkout: Path) -> None:
    planned = snakemake("-n", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    found = jobs(planned.stdout + planned.stderr)
    kinds = Counter(one.kind for one in artefacts().values())
    assert (found["table"], found["figure"]) == (kinds["table"], kinds["figure"])
    assert (found["claims"], found["search_history"], found["timing"]) == (1, 1, 6)
    distinct = {*cells_of(config.preset("embedded")), *config.cells(config.preset("embedded"))}
    worlds = {folder for world in plan(config.preset("embedded")) for folder in world.folders}
    assert found["cell"] + found["learned_cell"] == len({layout.cell("embedded", one) for one in distinct} | worlds)


def test_everything_of_a_preset_without_searches_has_no_report_on_them(checkout: Path) -> None:
    planned = snakemake("-n", "--config", "preset=smoke", "methods=[single]", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    found = jobs(planned.stdout + planned.stderr)
    assert "search_history" not in found
    assert found["claims"] == 1


def test_everything_of_a_study_is_its_own_report_and_the_tables_of_its_cells(checkout: Path) -> None:
    planned = snakemake("-n", "--config", "preset=learning_baselines", folder=checkout)
    found = jobs(planned.stdout + planned.stderr)
    assert (found["table"], found["learning"], found.get("figure"), found.get("claims")) == (3, 1, None, None)


@pytest.mark.parametrize("name", ["ablation/no_write_gate", "reports/smoke/ablation/no_write_gate"])
def test_one_ablation_alone_touches_no_other(checkout: Path, name: str) -> None:
    target = f"{name}.tex" if name.startswith("reports") else f"reports/{name}.tex"
    planned = snakemake("-n", target, "--config", "preset=smoke", folder=checkout)
    assert planned.returncode == 0, planned.stderr
    found = jobs(planned.stdout + planned.stderr)
    copies = {"run_name", "published_copy"} if name.startswith("ablation") else set()
    assert found.pop("total") == sum(found.values())
    assert found == {"data": 2, "world": 1, "learned_cell": 4, "table": 1, **dict.fromkeys(copies, 1)}


def test_an_artefact_that_a_preset_cannot_have_is_refused_with_the_reason(checkout: Path) -> None:
    refused = snakemake("-n", "reports/smoke/depth.png", folder=checkout)
    assert refused.returncode != 0
    assert (
        "depth cannot be made of preset smoke, which has no benchmark it is made from"
        in refused.stdout + refused.stderr
    )


def test_a_changed_world_takes_the_questions_of_its_preset(checkout: Path) -> None:
    name = "results/smoke@slope=4.0/cells/single/gsm_hard/qwen-2.5-14B/seed0/run.json"
    planned = snakemake("-n", name, folder=checkout)
    assert planned.returncode == 0, planned.stderr
    assert jobs(planned.stdout + planned.stderr) == {"data": 2, "world": 2, "cell": 1, "total": 5}


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
        "health": 5,
        "cell": 75,
        "learned_cell": 90,
        "table": 1,
        "total": 176,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reports/nope/main_table.tex"], "error: unknown preset 'nope'; known: cpu_server, embedded, "),
        (["--config", "preset=embeded"], "error: unknown preset 'embeded'; did you mean 'embedded'?"),
        (["--config", "limits={test: 3}"], "did you mean 'limit'?"),
        (["--config", "seeds=0"], "config/presets/embedded.yaml with seeds overridden: seeds: 0 should be a list"),
        (
            ["reports/smoke/costs.md", "--config", "seeds=0"],
            "config/presets/smoke.yaml with seeds overridden: seeds: 0 should be a list",
        ),
        (["--cores", "0"], "error: no job can run on 0 cores; give --cores 1 or more, or all"),
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


def test_what_one_preset_cannot_have_is_no_mistake_in_another(checkout: Path) -> None:
    planned = snakemake("-n", "reports/paper/errors.md", "--config", "weights=awq", "methods=[single]", folder=checkout)
    assert planned.returncode == 0, planned.stderr


# What the simulator imports that cannot change a world: how requests are read, declarations of config/, paths, errors.
NO_SOURCE = {"agents", "declarations", "errors", "files", "llm", "runner", "yaml_files"}


def imported_by_the_simulator() -> set[str]:
    text = "".join(path.read_text() for path in (ROOT / "harness" / "simulator").glob("*.py"))
    below = re.findall(r"from harness\.(\w+)", text)
    beside = re.findall(r"from harness import ([\w, ]+)", text)
    return {*below, *(name.strip() for names in beside for name in names.split(","))} - NO_SOURCE


def test_a_change_of_what_the_simulated_world_is_made_of_makes_a_new_one() -> None:
    rule = (ROOT / "workflow" / "rules" / "data.smk").read_text().split("rule world")[1]
    made_of = imported_by_the_simulator()
    assert {"simulator", "benchmarks", "rng"} <= made_of
    for room in made_of:
        assert f'"harness/{room}"' in rule or f'"harness/{room}.py"' in rule, room
    for source in ("config/backbones.yaml", "config/encoder.yaml", "config/simulator.yaml"):
        assert f'"{source}"' in rule


def test_a_change_of_what_a_simulated_reply_is_made_of_makes_a_new_revision() -> None:
    # The sandbox tries programs when the world is made, and prices and sizes of backbones stand in the world.
    for room in imported_by_the_simulator() - {"sandbox", "backbones"}:
        assert room in _CODE or f"{room}.py" in _CODE, room


def test_the_name_of_the_run_is_true_of_every_copy_beside_it_and_nothing_else_is_removed(checkout: Path) -> None:
    reports = checkout / "reports"
    for preset in ("smoke", "embedded"):
        (reports / preset).mkdir(parents=True)
        for name in ("notes.csv", "notes.md", "edited.md"):
            (reports / preset / name).write_text(preset)
    strangers = [reports / folder / "thesis.tex" for folder in ("", "ablation", "smoke", "embedded")]
    (reports / "ablation").mkdir()
    for path in strangers:
        path.write_text("a year's work")
    copies = ["reports/notes.csv", "reports/notes.md", "reports/edited.md"]
    assert snakemake("--cores", "1", *copies, "--config", "preset=smoke", folder=checkout).returncode == 0
    assert (reports / "notes.csv").read_text() == "smoke"
    (reports / "edited.md").write_text("with a word of mine")
    assert snakemake("--cores", "1", "reports/notes.md", folder=checkout).returncode == 0
    assert (reports / "RUN").read_text().startswith("embedded: ")
    assert (reports / "notes.md").read_text() == "embedded"
    assert not (reports / "notes.csv").exists()
    assert (reports / "edited.md").read_text() == "with a word of mine"
    assert [path.read_text() for path in strangers] == ["a year's work"] * 4
    again = ["reports/notes.csv", "reports/notes.md"]
    assert snakemake("--cores", "1", *again, "--config", "preset=smoke", folder=checkout).returncode == 0
    assert [(checkout / name).read_text() for name in again] == ["smoke", "smoke"]


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

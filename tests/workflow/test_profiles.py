"""The profiles name options and rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.files import ROOT

PROFILES = sorted((ROOT / "profiles").glob("*/config.yaml"))
RULES = "".join(path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.parent.name)
def test_options_and_rules_exist(path: Path) -> None:
    cli = pytest.importorskip("snakemake.cli")
    if path.parent.name == "slurm":
        pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra `slurm` is not installed")
    profile = yaml.safe_load(path.read_text())
    options = cli.get_argument_parser()._option_string_actions
    assert [name for name in profile if f"--{name}" not in options] == []
    for setting in ("set-threads", "set-resources"):
        for rule in profile.get(setting, {}):
            assert f"rule {rule}:" in RULES


def test_no_rule_that_wants_all_cores_is_sent_to_a_scheduler() -> None:
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    greedy = [part.split(":")[0] for part in ("\n" + RULES).split("\nrule ")[1:] if "threads: 1024" in part]
    assert set(greedy) == set(profile["set-threads"])

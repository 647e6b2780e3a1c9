"""Every command has a help text and a place on the page."""

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from harness.files import ROOT
from workflow.cli import app

PAGE = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
NAMES = list(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_what_it_does(name: str) -> None:
    said = CliRunner().invoke(app, [name, "--help"])
    assert said.exit_code == 0
    assert f"Usage: gmr {name}" in said.stdout or f"Usage: root {name}" in said.stdout


def test_the_page_names_every_command() -> None:
    assert [name for name in NAMES if not re.search(rf"`gmr {name}\b", PAGE)] == []


def test_an_unknown_command_is_a_mistake() -> None:
    assert CliRunner().invoke(app, ["shwo"]).exit_code == 2

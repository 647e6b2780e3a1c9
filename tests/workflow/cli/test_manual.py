"""``gmr --help`` names every command in its place, and what it gives as an example can be given."""

import re
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from harness.files import ROOT
from workflow.cli import app
from workflow.manual import PANELS, STATUSES, Entry

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
ENTRIES = [(name, entry) for entries in PANELS.values() for name, entry in entries.items()]


def said(*words: str) -> str:
    """The help text on a wide terminal, as one line."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "400", "TERMINAL_WIDTH": "400"})
    assert shown.exit_code == 0
    return shown.stdout


def test_the_manual_has_every_command_and_no_other() -> None:
    assert {name for name, _ in ENTRIES} == set(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_help_shows_the_commands_in_the_order_of_the_manual() -> None:
    text = said()
    titles = [re.search(rf"─ {panel} ─", text) for panel in PANELS]
    places = [found.start() for found in titles if found]
    assert len(places) == len(PANELS)
    assert places == sorted(places)
    shown = re.findall(r"^│ ([a-z][a-z-]*) ", text, re.MULTILINE)
    assert shown == [name for name, _ in ENTRIES]


def test_the_help_says_what_every_status_means() -> None:
    text = said()
    for status, meaning in STATUSES.items():
        assert re.search(rf"^ *{status} +{re.escape(meaning)}", text, re.MULTILINE)


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=[name for name, _ in ENTRIES])
def test_the_example_of_a_command_stands_in_its_help_and_is_understood(name: str, entry: Entry) -> None:
    text = said(name)
    assert f"Example: {entry.example}" in text
    for status, meaning in entry.also.items():
        assert f"Status {status}: {meaning}." in text
    program, *words = shlex.split(entry.example)
    assert program == "gmr"
    assert words[0] == name
    context = get_command(app).make_context("gmr", words[:])
    command, rest = get_command(app), words
    while hasattr(command, "commands"):
        key, command, rest = command.resolve_command(context, rest)  # type: ignore[attr-defined]
        context = command.make_context(key, list(rest), parent=context)
        rest = [*context._protected_args, *context.args] if hasattr(command, "commands") else rest


def test_the_page_names_every_command_and_every_status() -> None:
    for name, _ in ENTRIES:
        assert f"`gmr {name}" in PAGE, name
    rows = dict(re.findall(r"^\| (\d+) \| (.*?) \|", PAGE, re.MULTILINE))
    assert {int(status): meaning for status, meaning in rows.items()} == STATUSES


def test_an_unknown_command_is_a_mistake() -> None:
    assert CliRunner().invoke(app, ["shwo"]).exit_code == 2

"""The four file formats: honest first lines, valid syntax, the same bytes every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.source import Source
from analysis.table import html, latex, latex_escape, md_escape
from harness.files import ROOT
from tests.analysis.reading import Read as Table
from tests.analysis.reading import main_table, write


class Page(HTMLParser):
    """The parts of a page that the tests look at."""

    VOID = ("meta", "br", "link", "img", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def table(write_cell) -> Table:
    return main_table.build(
        Source.of([write_cell("cot"), write_cell("single", calibrated=True), write_cell("gmr", "pool")])
    )


@pytest.mark.parametrize("ending", [".tex", ".csv", ".md", ".html"])
def test_the_first_line_tells_a_simulated_run(tmp_path, tiny, ending):
    def first_line(simulated: bool) -> str:
        files = write(tiny(simulated=simulated), tmp_path / str(simulated), "tiny")
        (path,) = [path for path in files if path.suffix == ending]
        return path.read_text(encoding="utf-8").splitlines()[0]

    assert "SIMULATED" in first_line(True)
    assert "SIMULATED" not in first_line(False)


def test_html_stands_alone(table):
    page = Page(html(table))
    assert not page.open
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href", "onclick")]
    text = html(table)
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:|url\(|@import", text)


def test_nothing_a_user_writes_becomes_markup(tiny):
    page = Page(html(tiny('50% & <b>"x"</b> <script>alert(1)</script>')))
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.text


@given(st.text())
def test_latex_escapes_leave_plain_ascii_and_balanced_groups(text):
    escaped = latex_escape(text)
    assert escaped.isascii()
    assert not re.search(r"[\x00-\x1f\x7f]", escaped)
    assert not re.search(r"(?<!\\)[%#&_]", escaped)
    bare = re.sub(r"\\[{}]", "", escaped)
    assert bare.count("{") == bare.count("}")
    assert len(re.findall(r"(?<!\\)\$", escaped)) % 2 == 0


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\n\r"), max_size=30))
def test_markdown_escapes_are_undone_by_dropping_backslashes(text):
    assert re.sub(r"\\(.)", r"\1", md_escape(text)) == text


def test_latex_groups_rows_by_method_and_section(table):
    text = latex(table)
    assert r"\multirow[t]{5}{*}{Single LLM}" in text
    assert text.count(r"\midrule") == 7
    for line in text.splitlines():
        if line.endswith(r"\\") and "multicolumn" not in line and "toprule" not in line:
            assert len(re.findall(r"(?<!\\)&", line)) == 4 + 2 - 1


def test_bytes_depend_on_the_cells_alone(tmp_path, write_cell):
    """Two processes, two hash seeds, two orders of the cells."""
    cells = [write_cell(method, benchmark=key) for method in ("cot", "aflow") for key in ("math", "mbpp", "riddles")]
    script = (
        "import sys; from pathlib import Path; from tests.analysis.reading import main_table, write; "
        "from analysis.source import Source; "
        "write(main_table.build(Source.of([Path(p) for p in sys.argv[2:]])), Path(sys.argv[1]), 'table')"
    )
    for seed, order in (("1", cells), ("2", cells[::-1])):
        command = [sys.executable, "-c", script, str(tmp_path / seed), *map(str, order)]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed})
    for ending in (".tex", ".csv", ".md", ".html"):
        first, second = (tmp_path / seed / f"table{ending}" for seed in ("1", "2"))
        assert first.read_bytes() == second.read_bytes()
        assert str(tmp_path).encode() not in first.read_bytes()

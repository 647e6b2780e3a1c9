"""The four file formats: honest first lines, valid syntax, the same bytes every time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.source import Source
from analysis.table import html, latex, latex_escape, md_escape, number
from tests.analysis.reading import Html, main_table, write
from tests.analysis.reading import Read as Table


@pytest.fixture
def table(write_cell) -> Table:
    return main_table.build(
        Source.of([write_cell("cot"), write_cell("single", calibrated=True), write_cell("gmr", "pool")])
    )


def test_the_first_line_of_every_file_tells_a_simulated_run(tmp_path, tiny):
    for simulated in (True, False):
        files = write(tiny(simulated=simulated), tmp_path / str(simulated), "tiny")
        assert len(files) == 4
        for path in files:
            assert ("SIMULATED" in path.read_text(encoding="utf-8").splitlines()[0]) == simulated


def test_html_stands_alone(table):
    page = Html(html(table))
    assert not page.open
    assert not {"script", "link", "img", "iframe"} & page.tags
    assert not [value for name in ("src", "href", "onclick") for value in page.values(name)]
    text = html(table)
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:|url\(|@import", text)


def test_nothing_a_user_writes_becomes_markup(tiny):
    page = Html(html(tiny('50% & <b>"x"</b> <script>alert(1)</script>')))
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


def test_a_number_has_a_true_minus_and_zero_no_sign() -> None:
    assert [number(one, 1) for one in (-1.25, -0.04, 2)] == ["−1.2", "0.0", "2.0"]
    assert [number(one, 1, "+") for one in (-1.25, 0.04, -0.04, 2)] == ["−1.2", "0.0", "0.0", "+2.0"]


def test_bytes_depend_on_the_cells_alone(tmp_path, write_cell):
    cells = [write_cell(method, benchmark=key) for method in ("cot", "aflow") for key in ("math", "mbpp", "riddles")]
    first, second = (main_table.build(Source.of(order)).made.contents() for order in (cells, cells[::-1]))
    assert first == second
    assert set(first) == {"tex", "csv", "md", "html"}
    assert not any(str(tmp_path) in text for text in first.values())

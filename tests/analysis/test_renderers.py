"""File formats: warnings in first lines, valid syntax, deterministic bytes, and LaTeX that compiles."""

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.exhibit import BEST, NOT_RUN, Entry, format_cost, md_escape, number, write
from analysis.latex import latex_escape
from analysis.published import load
from analysis.registry import ENDINGS
from analysis.table import Table, labels_of, lay_out
from tests.analysis.reading import main_table


def tiny(text: str = "text", simulated: bool = True) -> Table:
    """Return a small table with a given text wherever text may stand."""
    entries = [Entry("12.34", BEST, "†", "+1.00", "10.0–14.0")] * 3
    return Table(
        label="tiny",
        caption=text,
        simulated=simulated,
        shown=lay_out(
            labels_of([("one", text, "a"), ("one", text, "b"), ("two", "z", "a")], ("Method", "LLM")),
            {(text, text): {"Publ.": entries, "Meas.": [Entry(NOT_RUN)] * 3}},
        ),
        notes=(text,),
        provenance={text: text},
        frame=pd.DataFrame([{"a": text, "b": 1}]),
    )


def test_wide_tables_come_in_parts_that_lose_no_column_and_long_texts_are_broken() -> None:
    words = "many words of one label " * 5
    columns = {title: [Entry("+12.34", beside="×0.93", below="−11.8, +30.1")] for title in "abc"}
    groups = {("A heading", str(number)): columns for number in range(5)}
    labels = labels_of([("one", "GMR", "LLM Pool")], ("Method", "LLM"))
    table = dataclasses.replace(tiny(), shown=lay_out(labels, groups))
    texts = table.contents()
    assert (texts["md"].count("\n| --- "), texts["html"].count("<table>")) == (2, 2)
    assert [line.count(r"{3}{l}") for line in texts["tex"].splitlines() if line.startswith(r"\gmrset")] == [5, 2, 2, 1]
    groups = {("", ""): {title: [Entry(words)] for title in "abc"}}
    table = dataclasses.replace(table, shown=lay_out(labels_of([("one", words, "a_b")], ("a", "b")), groups))
    assert table.contents()["tex"].count(r"\parbox[t]{16em}") == 4


@pytest.mark.parametrize("simulated", [True, False])
def test_every_file_tells_first_whether_it_is_simulated_and_a_csv_needs_no_option(simulated: bool, tmp_path: Path):
    title = 'router #2, "new"'
    files = write(tiny(title, simulated), tmp_path, "tiny")
    assert {path.name for path in files} == {f"tiny.{ending}" for ending in ENDINGS["table"]}
    for path in files:
        assert ("SIMULATED" in path.read_text(encoding="utf-8").splitlines()[0]) == simulated
    assert pd.read_csv(tmp_path / "tiny.csv")[["a", "b"]].to_dict("records") == [{"a": title, "b": 1}]


def test_tables_of_two_presets_have_labels_of_their_own() -> None:
    fragment = dataclasses.replace(tiny(), provenance={"preset": "paper_4bit"}).contents()["tex"]
    assert re.findall(r"\\label{(.*?)}", fragment) == ["tab:paper-4bit-tiny"]


def test_control_characters_and_markup_of_users_are_escaped(tmp_path):
    for path in write(tiny("a\x1b[2K\u202eb\rc"), tmp_path, "tiny"):
        assert path.read_text(encoding="utf-8").replace("\n", "").isprintable()
    fragment = tiny('50% & <b>"x"</b> <script>alert(1)</script>').contents()["html"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in fragment
    assert not re.search("<script|<b>", fragment)


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
    assert not re.search(r"(?<!\\)\$", md_escape(text).replace(r"\\", "")), "a formula on some hosts"


def test_a_number_has_a_true_minus_and_zero_no_sign() -> None:
    assert [number(one, 1) for one in (-1.25, -0.04, 2)] == ["−1.2", "0.0", "2.0"]
    assert [number(one, 1, "+") for one in (-1.25, 0.04, -0.04, 2)] == ["−1.2", "0.0", "0.0", "+2.0"]
    assert [format_cost(one, sign="+") for one in (-0.00123, 0, 0.5)] == ["−0.0012", "0.00", "+0.50"]


_ONE_COLUMN = r"\documentclass{article}"
_CLASSES = (
    _ONE_COLUMN,
    r"\documentclass[twocolumn]{article}",
    r"\documentclass{IEEEtran}",
    r"\documentclass[sigconf,nonacm]{acmart}",
    r"\documentclass{article}\usepackage[textwidth=5.5in,textheight=9in]{geometry}",  # as NeurIPS's style
)


def compiled(fragment: str, folder: Path, kind: str = _ONE_COLUMN) -> str:
    """Return what pdflatex logged of a table in LaTeX in a document of a class."""
    packages = r"\usepackage{booktabs,adjustbox,graphicx}"
    text = rf"{kind}{packages}\begin{{document}}\title{{x}}\maketitle {fragment}\end{{document}}"
    (folder / "document.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "document.tex"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    return (folder / "document.log").read_text(errors="replace")


def sticking_out(log: str) -> list[str]:
    """Return the complaints on what does not fit; a few points are not seen."""
    found = re.findall(r"Overfull \\.box \(([\d.]+)pt.*|Float too large.*", log)
    return [points for points in found if not points or float(points) > 5]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_the_full_table_fits_the_page_of_every_class(tmp_path, write_cell):
    places = [(row, benchmark) for row in load().rows for benchmark in row.accuracies]
    fragment = main_table(*(write_cell(row.method, row.backbone, key) for row, key in places)).made.contents()["tex"]
    for kind in _CLASSES:
        name = re.findall(r"\w+(?=})", kind)[0]
        if subprocess.run(["kpsewhich", f"{name}.cls"], capture_output=True, check=False).returncode == 0:
            assert sticking_out(compiled(fragment, tmp_path, kind)) == [], kind


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_whatever_stands_in_a_label_compiles(tmp_path):
    # At the start of a row a bracket or a star would be taken for an argument of the line break before it.
    fragments = []
    for start in ("".join(map(chr, range(32, 127))), "[1pt]", "*", "--- '' `` ● ○ − † é 中 \N{GRINNING FACE}"):
        made = tiny(start)
        made = dataclasses.replace(made, shown=made.shown.rename(index={"z": start}, level="Method"))
        fragments.append(made.contents()["tex"])
    assert "Missing character" not in compiled("\n".join(fragments), tmp_path)

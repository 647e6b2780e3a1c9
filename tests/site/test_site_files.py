"""What a site is made of, without a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from markupsafe import Markup, escape

from analysis import registry, render
from analysis.sections import SECTIONS, by_section, section, title
from analysis.site import charts, frame, libraries, pieces
from analysis.site.charts import Titles
from analysis.site.documents import html, parts, slug
from analysis.site.frame import Site
from analysis.site.source import Finished
from analysis.tables import Entry, Group, Row, Table
from harness.errors import UserError
from harness.runner import config, layout
from tests.site.run import REPORTS
from tests.site.run import cells as cells_of_run

HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(2)> & \' "'
SITE = Site.of("smoke", simulated=True)


class Links(HTMLParser):
    """Every address and every id of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.addresses.append(value)
            if name == "id" and value:
                self.ids.add(value)


def table(text: str = "text", cell: str = "gmr/gsm_hard/pool/0") -> Table:
    return Table(
        label="tiny",
        caption=text,
        simulated=True,
        heads=("Method", "LLM"),
        groups=(Group(text, "n = 1", ("Publ.", "Meas.")),),
        rows=(Row("one", (text, text), (Entry("1.00"), Entry("12.34", sign="†", below="1.0–2.0", cell=cell))),),
        notes=(text, "second"),
        provenance=(("run", text),),
        records=({"a": text},),
    )


def broken(page: Path, reports: Path) -> list[str]:
    """Addresses of a page that lead nowhere; a fragment of the explorer or the training page is no id."""
    found = []
    for address in Links(page.read_text()).addresses:
        path, _, fragment = address.partition("#")
        if path.startswith(("data:", "https://")):
            continue
        target = (page.parent / unquote(path)).resolve() if path else page
        if not target.is_file() or not target.is_relative_to(reports.resolve()):
            found.append(address)
        elif fragment and target.name not in {"explorer.html", "training.html"}:
            found += [address] if unquote(fragment) not in Links(target.read_text()).ids else []
    return found


def test_every_link_of_every_page_resolves(site: Path) -> None:
    pages = [site / "index.html", *(path for path in (site / "site").glob("*.html") if path.name != "front.html")]
    assert {page.name for page in pages} == {"index.html", "explorer.html", "training.html", "deviations.html"}
    assert {page.name: broken(page, site) for page in pages} == {page.name: [] for page in pages}


def test_the_front_page_is_the_index_for_the_folder_above(site: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "smoke").symlink_to(site)
    front = reports / "index.html"
    front.write_text((site / "site" / "front.html").read_text())
    links = [address for address in Links(front.read_text()).addresses if not address.startswith(("#", "data:"))]
    assert [address for address in links if not address.startswith("smoke/")] == []
    assert [address for address in links if not (reports / unquote(address.partition("#")[0])).is_file()] == []
    assert re.sub('(?<=["#])smoke/', "", front.read_text()).replace('data-base="', "") == (
        site / "index.html"
    ).read_text().replace('data-base="', "")


def test_every_page_says_that_it_is_simulated(site: Path) -> None:
    for page in [site / "index.html", *(site / "site").glob("*.html")]:
        text = page.read_text()
        assert "SIMULATED BACKBONES: no language model was asked" in text.splitlines()[0]
        assert re.search(r"<title>SIMULATED: ", text)
        assert re.search(r'<p class="banner simulated">SIMULATED BACKBONES', text)


@pytest.mark.parametrize(("simulated", "words"), [(True, "SIMULATED BACKBONES"), (False, "REAL MODELS")])
def test_a_replay_says_so_beside_what_it_is(
    simulated: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [banner.words.split(":")[0] for banner in Site.of("p", simulated=simulated).banners] == [words]
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded" / "manifest.json").write_text('{"files": [], "questions": false}')
    kinds = [banner.words.split(":")[0] for banner in Site.of("p", simulated=simulated).banners]
    assert kinds == ["REPLAYED", words]


def test_no_page_lets_the_net_in_or_a_script_that_it_did_not_bring(site: Path) -> None:
    for page in [site / "index.html", *(site / "site").glob("*.html")]:
        policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text())
        assert len(policy) == 1
        rules = dict(part.strip().split(" ", 1) for part in policy[0].split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "'self' file:"
        assert not re.search(r"<script(?![^>]* src=)|\son\w+=", page.read_text())


def test_the_site_is_the_same_bytes_every_time(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "results").symlink_to(run_folder / "results")
    reports = tmp_path / "reports" / "smoke"
    reports.mkdir(parents=True)
    for path in (run_folder / "reports" / "smoke").iterdir():
        if path.is_file() and path.name != "index.html":
            (reports / path.name).symlink_to(path)
    (reports / "site").mkdir()
    (reports / "site" / "of-an-older-run.js").write_text("")
    (reports / "site" / "files.txt").write_text("of-an-older-run.js\n")
    (reports / "site" / "thesis.tex").write_text("a year's work")
    again = subprocess.run(
        [sys.executable, "-c", "from tests.site.run import preset, reports; reports.write('site', preset())"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert (reports / "site" / "thesis.tex").read_text() == "a year's work"
    (reports / "site" / "thesis.tex").unlink()
    assert contents(reports) == contents(run_folder / "reports" / "smoke")


def contents(reports: Path) -> dict[str, bytes]:
    files = [reports / "index.html", *(path for path in (reports / "site").rglob("*") if path.is_file())]
    return {path.relative_to(reports).as_posix(): path.read_bytes() for path in files}


def test_nothing_of_this_machine_stands_in_the_site(run_folder: Path) -> None:
    site = run_folder / "reports" / "smoke"
    ours = [path for path in (site / "site").rglob("*") if path.is_file() and path.parent.name != "lib"]
    for path in [site / "index.html", *ours]:
        assert str(run_folder).encode() not in path.read_bytes()


def test_with_nothing_finished_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"^no cell of preset smoke is finished, .* run `snakemake .*`[^\n]*$"):
        Finished.of(config.preset("smoke"), ["main_table"])
    assert list(tmp_path.iterdir()) == []


def test_the_table_of_the_site_is_that_of_the_file(tmp_path: Path) -> None:
    render.write(table(HOSTILE), tmp_path, "tiny")
    page = (tmp_path / "tiny.html").read_text()
    piece = pieces.read(tmp_path / "tiny.html")
    assert piece.caption == escape(HOSTILE)
    assert piece.notes == (escape(HOSTILE), "second")
    assert piece.facts == (("run", escape(HOSTILE)),)
    assert piece.inside in page
    assert "<script" not in piece.linked("")
    assert "<img" not in piece.linked("")


def test_a_measured_number_leads_to_its_cell(tmp_path: Path) -> None:
    render.write(table(cell='gmr/a b/"<pool>/0'), tmp_path, "tiny")
    linked = pieces.read(tmp_path / "tiny.html").linked("x/")
    assert '<a href="x/site/explorer.html#cell=gmr/a%20b/%22%3Cpool%3E/0">12.34</a>†' in linked
    assert linked.count("<a ") == 1


def test_every_measured_number_of_the_main_table_has_its_cell(site: Path, run_folder: Path) -> None:
    records = charts.read(site / "main_table.csv")
    cells = [
        f"{one['method']}/{one['benchmark']}/{one['backbone']}/{one['seeds'].split()[0]}"
        for one in records
        if one["measured"] and one["benchmark"] != "average"
    ]
    linked = pieces.read(site / "main_table.html").linked("")
    assert re.findall(r'#cell=([^"]*)"', linked) == cells
    assert len(cells) == len(cells_of_run())
    for cell in cells:
        method, benchmark, backbone, seed = cell.split("/")
        folder = layout.cell("smoke", config.Cell(method, benchmark, backbone, int(seed)))
        assert (run_folder / folder / "run.json").is_file()


@pytest.mark.parametrize("reader", [pieces.read, pieces.read_claims])
def test_a_strange_page_is_named(reader: Any, tmp_path: Path) -> None:
    path = tmp_path / "main_table.html"
    path.write_text("<html><table><tr></tr></table></html>")
    with pytest.raises(UserError, match=r"main_table\.html is not a report"):
        reader(path)


def test_all_claims_stand_in_one_table(site: Path) -> None:
    found = pieces.read_claims(site / "claims.html")
    keys = [one["claim"] for one in charts.read(site / "claims.csv")]
    assert re.findall(r'<tr id="([^"]*)">', found.table.inside) == list(dict.fromkeys(keys))
    heads = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", found.table.inside)
    assert heads[0] == "Section"
    rows = found.table.inside.partition("<tbody>")[2].split("</tr>")[:-1]
    assert {len(re.findall(r"<t[dh][ >]", row)) for row in rows} == {len(heads)}


def test_what_a_template_is_given_is_escaped() -> None:
    page = frame.render("document.html.j2", title=HOSTILE, here="report", site=SITE, text=HOSTILE)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert str(escape(HOSTILE)) in page
    safe = frame.render("document.html.j2", title="t", here="report", site=SITE, text=Markup("<b>x</b>"))
    assert "<b>x</b>" in safe


def test_markdown_becomes_no_markup_of_its_own() -> None:
    made = html(f"# {HOSTILE}\n\n{HOSTILE}\n\n| a |\n|---|\n| [x](javascript:alert(1)) |\n", below=2)
    assert "<script" not in made
    assert "<img" not in made
    assert "javascript:" not in re.sub(r"\[x\]\(javascript:alert\(1\)\)", "", made)
    assert made.startswith("<h3 id=")
    assert made.count('<div class="scroll"><table class="sortable">') == made.count("</table></div>") == 1


def test_links_of_a_document_lead_into_it_or_into_the_net() -> None:
    made = html("[in](#d-1) [out](https://example.org/) [beside](grading.md#x)", below=0)
    assert re.findall(r'href="([^"]*)"', made) == ["#d-1", "https://example.org/"]
    assert "beside" in made


def test_parts_of_a_document() -> None:
    assert parts("a\n## One\nb\n### deeper\n## Two\n") == {
        "": "a\n",
        "One": "## One\nb\n### deeper\n",
        "Two": "## Two\n",
    }
    assert slug("D-GEN-1 Token counts") == "d-gen-1-token-counts"


def test_datatables_as_a_classic_script() -> None:
    made = libraries.classic("var a=1;export{b as X,a as default,c as Y};\n/* end */")
    assert made == '(()=>{"use strict";\nvar a=1;window.DataTable=a;\n/* end */\n})();\n'


@pytest.mark.parametrize(
    "module",
    [
        "var a;",
        "export default a;",
        "export{a};",
        "export{a as default};export{b as c};",
        "import b;export{a as default};",
    ],
)
def test_a_module_of_another_shape_is_refused(module: str) -> None:
    with pytest.raises(UserError, match=r"constraints\.txt"):
        libraries.classic(module)


def test_the_installed_libraries_are_as_they_are_known() -> None:
    found = libraries.libraries()
    assert set(found) == {"plotly.min.js", "datatables.js", "datatables.css"}
    assert "window.DataTable=" in found["datatables.js"]
    assert not re.search(r"\bexport\s*[{d*]|\bimport\(", found["datatables.js"])
    assert not re.search(r"url\((?!['\"]?data:)|@import", found["datatables.css"])


def test_every_artefact_has_its_section_and_name() -> None:
    assert {key for titles in SECTIONS.values() for key in titles} == set(registry.artefacts())
    assert section("a_new_one") == "Not in the paper"
    assert title("a_new_one") == "a_new_one"
    assert by_section(["a_new_one", "depth", "costs"]) == {
        "Cost and time": ["costs"],
        "Depth and weight of cost": ["depth"],
        "Not in the paper": ["a_new_one"],
    }


def test_a_chart_shows_the_numbers_of_its_file(site: Path) -> None:
    titles = Titles({"gsm_hard": "mini-GSM-Hard"})
    records = charts.read(site / "pareto_gsm.csv")
    (chart,) = charts.of_figure("pareto_gsm", site / "pareto_gsm.csv", titles)
    assert chart.title == "Accuracy against cost, mini-GSM-Hard"
    points = {
        (text, "published" if trace["marker"]["symbol"].endswith("-open") else "measured"): (x, y)
        for trace in chart.traces
        if trace["mode"] == "markers"
        for text, x, y in zip(trace["text"], trace["x"], trace["y"], strict=True)
    }
    expected = {
        (titles.row(one), side): (pytest.approx(1e4 * float(one[cost])), float(one[side]))
        for one in records
        for side, cost in (("measured", "cost_per_query"), ("published", "published_cost_per_query"))
        if one[side] and one[cost]
    }
    assert points == expected
    assert len([key for key in expected if key[1] == "measured"]) == len(cells_of_run())


def test_a_figure_that_is_not_known_has_no_chart(site: Path) -> None:
    assert charts.of_figure("a_new_one", site / "pareto_gsm.csv", Titles({})) == []


def test_a_figure_carries_its_caption(site: Path) -> None:
    text = (site / "index.html").read_text()
    assert "Hollow: published, its total over the number of questions" in text
    assert text.count('class="exhibit"') == len(REPORTS) - 1

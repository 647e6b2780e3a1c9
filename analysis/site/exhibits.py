"""The artefacts of a run as the site shows them: each from its own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from analysis.registry import Artefact
from analysis.sections import title
from analysis.site import charts, pieces
from analysis.site.charts import Chart, Titles
from analysis.site.pieces import Piece
from analysis.site.source import Finished

_MAIN = "main_table"


@dataclass(frozen=True)
class Exhibit:
    """A table or a figure, with what stands around it.

    Attributes:
        key: Its name.
        title: What readers call it.
        caption: What it shows.
        files: Its files, from the folder of the preset.
        table: Of a table.
        charts: Of a figure, and beside the main table; none where only the picture is known.
        picture: Of a figure: the file to show.
    """

    key: str
    title: str
    caption: Markup
    files: tuple[str, ...]
    table: Piece | None = None
    charts: tuple[Chart, ...] = ()
    picture: str | None = None

    @property
    def chunk(self) -> str:
        """Where the data of its charts lie."""
        return f"charts/{self.key}"


def exhibits(finished: Finished) -> list[Exhibit]:
    """Every artefact that is made, in the order of ``config/artefacts.yaml``.

    Raises:
        UserError: A file is not as this version of the suite writes it.
    """
    titles = Titles({cell.run.benchmark: cell.run.benchmark_title for cell in finished.cells})
    return [_exhibit(one, finished, titles) for one in finished.artefacts if is_made(one, finished)]


def is_made(artefact: Artefact, finished: Finished) -> bool:
    """Whether all files of an artefact are there."""
    return all(finished.report(name) for name in artefact.files)


def _exhibit(artefact: Artefact, finished: Finished, titles: Titles) -> Exhibit:
    files = [*artefact.files, f"{artefact.key}.pdf"]
    there = tuple(name for name in dict.fromkeys(files) if finished.report(name))
    paths = {Path(name).suffix: finished.folder / name for name in there}
    if artefact.kind == "figure":
        return Exhibit(
            artefact.key,
            title(artefact.key),
            escape(_caption(paths[".png"])),
            there,
            charts=tuple(charts.of_figure(artefact.key, paths[".csv"], titles)),
            picture=f"{artefact.key}.png",
        )
    table = pieces.read(paths[".html"])
    beside = (
        charts.of_main_table(paths[".csv"], titles, _with_a_plane(finished.artefacts)) if _is_main(artefact) else []
    )
    return Exhibit(artefact.key, title(artefact.key), table.caption, there, table=table, charts=tuple(beside))


def _is_main(artefact: Artefact) -> bool:
    return artefact.key == _MAIN


def _with_a_plane(artefacts: Sequence[Artefact]) -> list[str]:
    """Benchmarks whose plane of accuracy and cost is a figure of its own."""
    return [str(one.options["benchmark"]) for one in artefacts if one.kind == "figure" and "benchmark" in one.options]


def _caption(png: Path) -> str:
    """The caption that a picture carries, nothing for one that an older version made."""
    from PIL import Image

    with Image.open(png) as picture:
        return str(picture.info.get("Description", ""))

"""The page of the explorer, and all that it loads."""

from __future__ import annotations

from pathlib import Path

from analysis.explorer.data import write_data
from analysis.site import frame
from analysis.site.source import Finished
from harness.files import write_atomically


def write(finished: Finished) -> list[Path]:
    """Write the page and its data.

    Args:
        finished: What of the run is there to be shown.

    Returns:
        The files.

    Raises:
        UserError: A cell is damaged, or the disk is full.
    """
    folder = finished.folder / frame.FOLDER
    page = folder / "explorer.html"
    text = frame.render("explorer.html.j2", title="Trajectories", here="explorer", site=finished.site)
    write_atomically(page, text)
    return [page, *write_data(finished.preset.name, finished.cells, folder / "data")]

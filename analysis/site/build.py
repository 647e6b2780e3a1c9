"""The whole site of a run: its pages, what they load, and nothing of an older one."""

from __future__ import annotations

from pathlib import Path

from analysis.explorer import page as explorer
from analysis.site import deviations, frame, index
from analysis.site.libraries import libraries
from analysis.site.source import Finished
from analysis.training_view import page as training
from harness.files import write_atomically, writing

# The files of the site as it stands; what else lies in its folder is not the suite's.
_LIST = "files.txt"
_PAGES = (explorer, training, deviations, index)


def build(finished: Finished) -> list[Path]:
    """Write the site; its index comes last, so that a site with an index is whole.

    Args:
        finished: The finished part of a run.

    Returns:
        The files written.

    Raises:
        UserError: A file of the run is missing or damaged, or the disk is full.
    """
    site = finished.folder / frame.FOLDER
    with writing(site):
        (finished.folder / "index.html").unlink(missing_ok=True)
        for name in (site / _LIST).read_text("utf-8").splitlines() if (site / _LIST).exists() else ():
            (site / name).unlink(missing_ok=True)
    written = [*_assets(site), *_libraries(site / "lib")]
    for page in _PAGES:
        written += page.write(finished)
    names = [path.relative_to(site).as_posix() for path in written if path.is_relative_to(site)]
    write_atomically(site / _LIST, "".join(f"{name}\n" for name in names))
    return [*written, site / _LIST]


def _assets(site: Path) -> list[Path]:
    found = sorted(frame.ASSETS.iterdir())
    for path in found:
        write_atomically(site / path.name, path.read_bytes())
    return [site / path.name for path in found]


def _libraries(folder: Path) -> list[Path]:
    found = libraries()
    for name, text in found.items():
        write_atomically(folder / name, text)
    return [folder / name for name in found]

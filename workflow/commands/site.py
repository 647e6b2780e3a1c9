"""The command that makes the report people read."""

from __future__ import annotations

import logging

from workflow.app import Overrides, PresetName, app, preset_of


@app.command()
def site(preset: PresetName, overrides: Overrides = None) -> None:
    """Make the site of a preset from whatever is finished of it: reports/PRESET/index.html, to be opened from the disk.

    It shows the tables and figures that are made, and names those that are not.
    """
    from paper.site.build import build
    from paper.site.exhibits import is_made
    from paper.site.source import Finished
    from workflow.shown import shown

    chosen = preset_of(preset, overrides)
    finished = Finished.of(chosen, shown(chosen))
    written = build(finished)
    missing = [one.key for one in finished.artefacts if not is_made(one, finished)]
    size = sum(path.stat().st_size for path in written)
    if finished.missing:
        logging.info("%d of %d cells are not finished", len(finished.missing), len(finished.missing + finished.cells))
    if missing:
        logging.info("not made yet: %s", ", ".join(missing))
    logging.info("%s: %d files, %.1f MB", finished.folder / "index.html", len(written), size / 1e6)

"""The artefacts of ``config/artefacts.yaml`` and ``artefacts_beyond.yaml``, with their modules, cells and inputs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import Field, NonNegativeInt

from harness.benchmarks import catalogue
from harness.errors import UserError, check_names
from harness.files import Declaration, Distinct, Many, read_entries
from harness.fingerprint import fingerprint_of, source_of
from harness.runner import config, layout
from harness.runner.layout import Cell
from harness.runner.preset import making_with
from harness.runner.run import Run

if TYPE_CHECKING:
    from analysis.exhibit import Exhibit
    from analysis.frames import Results

logger = logging.getLogger(__name__)

ENDINGS: Mapping[str, tuple[str, ...]] = {
    "table": ("tex", "csv", "md", "html"),
    "figure": ("png", "pdf", "svg", "csv", "txt", "tex"),
    "report": ("md", "csv", "html"),
}
# Unfinished cells that a sentence names.
_NAMED = 5


def describe_unfinished(unfinished: Sequence[Path], finished: int) -> str:
    """Return a sentence with the number of unfinished cells (given by folder) and the names of the first."""
    names = [" ".join(folder.parts[-4:]) for folder in unfinished]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} of {len(names) + finished} cells are not finished ({', '.join(names[:_NAMED])}{more})"


class Selection(Declaration):
    """Selected cells of a preset. A key that is not set selects all; what the preset lacks is left out."""

    methods: Distinct[str] | None = None
    benchmarks: Distinct[str] | None = None
    largest: bool = False  # only the row on the largest backbone
    own: bool = False  # also the preset's methods and benchmarks that ``config/`` does not have
    trained: bool = False  # only methods that learn
    seeds: Distinct[NonNegativeInt] | None = None
    sweeps: bool = False  # of a recording, where a training costs nothing: also the variants of each ``sweep``

    def cells(self, run: Run) -> list[Cell]:
        """Return the cells, in the order of methods, rows, benchmarks, seeds."""
        further = [key for key in run.methods if key not in config.methods()] if self.own else []
        methods = (*(self.methods or run.methods), *further)
        if self.sweeps and run.endpoints == "recorded":
            methods += tuple(variant.key for key in run.methods for variant in run.entries[key].variants)
        own = filter(catalogue.is_further, run.benchmarks) if self.own else ()
        benchmarks = {*(self.benchmarks or run.benchmarks), *own}
        chosen_keys = {
            "methods": [key for key in methods if run.entries[key].trained or not self.trained],
            "benchmarks": [key for key in run.benchmarks if key in benchmarks],
            "seeds": self.seeds or run.seeds,
        }
        cells = run.model_copy(update=chosen_keys).cells()
        if run.endpoints == "recorded":  # A recording has no calls of methods that nobody ran.
            known = {key for key, entry in run.entries.items() if entry.swept or key in run.methods}
            finished = {cell for cell in cells if (layout.cell(run.name, cell) / "run.json").exists()}
            cells = [cell for cell in cells if cell.method in known or cell in finished]
        if not self.largest:
            return cells
        sizes = {key: backbone.parameters_b for key, backbone in run.declared.items()}
        largest = max((cell.backbone for cell in cells), key=lambda key: sizes.get(key, 0), default=None)
        return [cell for cell in cells if cell.backbone == largest]


class Artefact(Declaration):
    """One entry of ``config/artefacts.yaml``."""

    key: Annotated[str, Field(pattern="^([a-z0-9_]+/)?[a-z0-9_]+$")]  # name below ``reports/``, without ending
    title: str
    section: str = "Not in the paper"
    module: str
    function: str = "build"  # of the module: turns results into a table, a figure or a report
    kind: Literal["table", "figure", "report"]
    cells: Annotated[Many[Selection], MinLen(1)] = ()
    noise_floor: bool = False  # also reads repeated single calls
    tree: bool = False  # also reads an enumeration of first steps, of the preset or a recording
    reads_all: bool = False  # made from all finished cells of other artefacts
    over_splits: bool = False  # about a resampled run, of which no other artefact can be made
    about_paper: bool = False  # about statements of the paper, so not for runs with their own models
    optional: bool = False  # made by ``all`` only if the preset lists it
    caption: str = ""  # the same for every run, as are the notes in ``legend``
    legend: Many[str] = ()
    options: Mapping[str, Any] = {}  # passed to its module

    @property
    def files(self) -> list[str]:
        """Return the files that the artefact consists of, relative to the report folder of a preset."""
        return [f"{self.key}.{ending}" for ending in ENDINGS[self.kind]]

    def cells_of(self, run: Run) -> list[Cell]:
        """Return the cells that the artefact reads; none if the preset has none of its benchmarks."""
        if self.reads_all:
            return all_cells(run)
        again = run.asked_again() if self.noise_floor else []
        return [*dict.fromkeys([*(cell for selection in self.cells for cell in selection.cells(run)), *again])]

    def lacking(self, run: Run) -> str:
        """Return the requirement of the artefact that a preset does not meet; empty if it meets all."""
        if self.about_paper and run.pool:
            return "model of the paper"
        if self.over_splits != (run.splits == "resampled"):
            return f"{'resampled' if self.over_splits else 'single'} split of its questions"
        if not self.cells or self.cells_of(run):
            return ""
        if all(selection.trained for selection in self.cells):
            return "method that learns"
        named = {key for selection in self.cells for key in selection.benchmarks or run.benchmarks}
        backbones = f"backbone for its methods among {', '.join(run.backbones)}"
        return "benchmark it is made from" if named.isdisjoint(run.benchmarks) else backbones

    def check(self, run: Run) -> None:
        """Raise UserError, with the reason, if the artefact cannot be made of a preset."""
        if lacking := self.lacking(run):
            raise UserError(
                f"{self.key} cannot be made of preset {run.name}, which has no {lacking}; "
                "choose another preset (config/presets) or artefact (config/artefacts.yaml)"
            )

    def deciding_settings(self, run: Run) -> dict[str, Any]:
        """Return the settings that affect the artefact, apart from the content of its inputs."""
        names = ["margin", "reference"] if self.cells_of(run) else ["backbones", "benchmarks", "endpoints", "weights"]
        return {
            **{name: getattr(run, name) for name in names},
            "inputs": [str(path) for path in self.inputs(run)],
            **self.model_dump(mode="json", include={"module", "function", "options", "caption", "legend"}),
        }

    def inputs(self, run: Run) -> list[Path]:
        """Return the files that the artefact reads. The DAG makes them first."""
        trees = [layout.tree(run.name, key) / "run.json" for key in run.benchmarks if self.tree]
        cells = [layout.cell(run.name, cell) / "run.json" for cell in self.cells_of(run)]
        return [*cells, *filter(Path.is_file, trees)]

    def code(self) -> str:
        """Return the fingerprint of the code that makes the artefact from its inputs."""
        # An artefact without inputs is made from the configuration.
        read = [] if self.cells or self.reads_all else ["config/backbones.yaml", "config/weights.yaml"]
        return code_of_report("config/published.yaml", *read)

    def results(self, run: Run) -> Results:
        """Return the finished inputs of the artefact, to be read, and which are not finished."""
        # Planning a run imports this module and must not load pandas.
        from analysis.frames import Results

        folders = {cell: layout.cell(run.name, cell) for cell in self.cells_of(run)}
        done = {cell: folder for cell, folder in folders.items() if (folder / "run.json").is_file()}
        again = run.asked_again()
        return Results(
            run,
            self,
            folders=tuple(folder for cell, folder in done.items() if cell not in again),
            again=tuple(done[cell] for cell in again if cell in done),
            unfinished=tuple(folder for cell, folder in folders.items() if cell not in done),
        )

    def build(self, run: Run) -> Exhibit:
        """Make the artefact. Raises UserError if the preset lacks it, no cell is finished, or a cell is damaged."""
        self.check(run)
        results = self.results(run)
        if results.unfinished:
            cure = making_with(run, layout.report(run.name, self.files[0]))
            if not results.folders and not self.reads_all:
                problem = f"none of the {len(results.unfinished)} cells that {self.key} is made from is finished"
                raise UserError(problem, cure)
            logger.warning("%s: %s; %s", self.key, describe_unfinished(results.unfinished, len(results.folders)), cure)
        function = getattr(import_module(self.module), self.function, None)
        if function is None:
            raise UserError(f"{self.module} has no function {self.function}; correct the entry {self.key}")
        exhibit: Exhibit = function(results)
        return exhibit


def code_of_report(*files: str) -> str:
    """Return the fingerprint of the code that makes reports, and of further files that a report reads."""
    return fingerprint_of("analysis", "analysis/figure.mplstyle", "harness", *files)


@cache
def artefacts() -> Mapping[str, Artefact]:
    """Load every artefact by key. Raises UserError for an invalid entry, or an unknown method or module."""
    entries: dict[str, Artefact] = {}
    for file in ("artefacts.yaml", "artefacts_beyond.yaml"):
        for key, entry in read_entries(config.FOLDER / file, Artefact).items():
            named = [name for selection in entry.cells for name in selection.methods or ()]
            check_names("method", named, config.methods(), f"config/methods.yaml; named by artefact {key}")
            if source_of(entry.module) is None:
                raise UserError(f"config/{file} names the module {entry.module!r}, which cannot be found")
            entries[key] = entry
    return entries


def artefact(key: str) -> Artefact:
    """Return the artefact by its key. Raises UserError, which suggests the most similar key."""
    check_names("artefact", [key], artefacts(), "config/artefacts.yaml")
    return artefacts()[key]


def of_run(run: Run) -> list[Artefact]:
    """Return the artefacts of ``all``: those that the preset lists, else all that are not optional.

    Raises UserError if the preset names an unknown one.
    """
    keys = run.artefacts or [key for key, entry in artefacts().items() if not entry.optional]
    return [entry for entry in map(artefact, keys) if not entry.lacking(run)]


def all_cells(run: Run) -> list[Cell]:
    """Return the cells of all artefacts of ``all``."""
    return [*dict.fromkeys(cell for entry in of_run(run) if not entry.reads_all for cell in entry.cells_of(run))]

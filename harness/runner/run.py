"""Run: preset, methods, backbones and recordings as one value; and what a cell of it is made of.

:func:`harness.runner.preset.resolve` reads and checks a run once. Whatever needs a setting is given the run, or a cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import yaml
from pydantic import Field

from harness.benchmarks import catalogue
from harness.errors import UserError, check_names, unknown
from harness.files import digest, read_yaml, write_atomically
from harness.fingerprint import code_of, fingerprint, fingerprint_of, source_of
from harness.llm import endpoints
from harness.llm.backbones import ABOUT, Backbone
from harness.llm.endpoints import Endpoint
from harness.runner import config, layout
from harness.runner.config import Keys, Limit, MethodEntry
from harness.runner.layout import POOL, SINGLE, Cell

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"
PresetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Identity(NamedTuple):
    """What, besides its input files, decides the outputs of a job: content and place of its identity file.

    The job writes the file, which is one of its inputs, just before its outputs. A plan compares it with today's, and
    writes nothing. So a run that is locked out, or stopped before the job, leaves what the outputs were made of.
    """

    path: Path
    content: Mapping[str, Any]
    outputs: Sequence[Path]

    def is_current(self) -> bool:
        """Return whether the file has this content, by a clock that was not ahead, and the outputs exist."""
        try:
            is_same = self.path.stat().st_mtime <= time.time() and self.path.read_bytes() == self._text()
        except OSError:
            return False
        # Snakemake does not miss an output if what is made from it exists.
        return is_same and all(output.exists() for output in self.outputs)

    def write(self) -> None:
        """Write the file, before the outputs of its job."""
        write_atomically(self.path, self._text())

    def _text(self) -> bytes:
        return orjson.dumps(self.content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


class Run(Keys):
    """The keys of a preset, overrides applied, with all that they name."""

    name: PresetName  # of the preset
    simulated: bool  # the backbones, also where their replies are recorded
    entries: Mapping[str, MethodEntry]  # every method that may be run, by key
    declared: Mapping[str, Backbone]  # every backbone that may be named, by key, with its ``weights``
    recorded: Sequence[Any]  # the recordings that answer calls
    # To multiply a weight of cost by, so that cost weighs the same in every pool (D-GMR-5): the price of a completion
    # token of the paper's dearest backbone over that of the dearest one of the run, 1.0 for a pool that is free.
    cost_factor: float

    @property
    def served(self) -> bool:
        """Return whether servers are asked."""
        return "served" in self.endpoints

    @property
    def settings(self) -> dict[str, Any]:
        """Return every key of the preset with its value, in the form of overrides."""
        return self.model_dump(mode="json", include=set(Keys.model_fields))

    def write_settings(self) -> None:
        """Write the settings for the jobs of the run."""
        text = yaml.safe_dump(self.settings, sort_keys=False, width=120, allow_unicode=True)
        write_atomically(layout.settings(self.name), _HEAD + text)

    def servers_of(self, keys: Iterable[str]) -> dict[str, Endpoint]:
        """Return the endpoints of backbones from GMR_ENDPOINTS, else the preset, else ``config/endpoints.yaml``.

        Raises UserError if a backbone has no endpoint or one that is not valid.
        """
        if self.servers and not endpoints.named_file():
            return endpoints.choose(self.servers, keys, f"servers of preset {self.name}")
        path = Path(endpoints.named_file() or config.FOLDER / "endpoints.yaml")
        return endpoints.choose(read_yaml(path), keys, endpoints.endpoints_file())

    def rows(self, entry: MethodEntry) -> list[str]:
        """Return the rows of a method: keys of backbones, or the pool."""
        if entry.rows == "pool":
            return [POOL]
        large = self.backbones if entry.rows == "each" or self.large is None else self.large
        return [key for key in self.backbones if key in large]

    def seeds_of(self, entry: MethodEntry) -> tuple[int, ...]:
        """Return the training seeds of a method: those of the preset, or 0 for one that learns nothing (D-REPORT-1)."""
        return self.seeds if entry.trained else (0,)

    def cells(self) -> list[Cell]:
        """Return all cells, in the order of methods, rows, benchmarks, seeds."""
        return [
            Cell(method, benchmark, row, seed)
            for method in self.methods
            for row in self.rows(self.entries[method])
            for benchmark in self.benchmarks
            for seed in self.seeds_of(self.entries[method])
        ]

    def asked_again(self) -> list[Cell]:
        """Return the second askings of ``single`` rows that ``noise_floor`` names."""
        benchmarks = [benchmark for benchmark in self.noise_floor if benchmark in self.benchmarks]
        return [Cell(SINGLE, benchmark, row, 1) for row in self.rows(self.entries[SINGLE]) for benchmark in benchmarks]

    def check_benchmark(self, benchmark: str) -> None:
        """Raise a UserError, with the nearest name, for a benchmark that the preset does not have."""
        check_names("benchmark", [benchmark], self.benchmarks, f"preset {self.name}")

    def cell(self, cell: Cell) -> CellConfig:
        """Return the configuration of a cell, of any method.

        Raises UserError for a benchmark or a row that the preset does not have.
        """
        check_names("method", [cell.method], self.entries, "config/methods.yaml")
        self.check_benchmark(cell.benchmark)
        entry = self.entries[cell.method]
        rows = self.rows(entry)
        if cell.backbone not in (*self.declared, POOL):
            raise unknown("backbone", cell.backbone, rows, "config/backbones.yaml")
        if cell.backbone not in rows:
            raise UserError(
                f"{cell.method} has no row for {cell.backbone} in preset {self.name}, only for "
                f"{', '.join(rows) or 'none'}; add it to the preset's backbones"
                f"{', and to those that it calls large' if entry.rows == 'large' else ''}"
            )
        keys = (*(self.backbones if cell.backbone == POOL else (cell.backbone,)), *entry.further_backbones)
        matched: CellConfig | None = None
        if entry.matches is not None:
            other = self.entries[entry.matches]
            row = POOL if other.rows == "pool" else cell.backbone
            # Of what learns nothing there is one cell.
            seed = cell.seed if other.trained else 0
            matched = self.cell(Cell(other.key, cell.benchmark, row, seed))
        return CellConfig(
            cell.method,
            cell.benchmark,
            cell.backbone,
            cell.seed,
            run=self,
            entry=entry,
            backbones={key: self.declared[key] for key in dict.fromkeys(keys)},
            limit=self.limit.of(cell.benchmark),
            is_greedy="greedy" in (self.decoding, entry.decoding),
            answers_training=self.answer_training and not entry.trained,
            matched=matched,
        )

    def questions_of(self, benchmark: str) -> dict[str, Any]:
        """Return what decides the questions of a benchmark; of a user's own also its title, module and questions."""
        decides: dict[str, Any] = {"data": self.data, "splits": self.splits}
        if self.recordings:
            decides["recordings"] = [recording.sha256 for recording in self.recorded]
        if not catalogue.is_further(benchmark):
            return decides
        entry = catalogue.entry(benchmark)
        files = [path for path in (source_of(entry.module), Path(entry.questions or "")) if path and path.is_file()]
        return {**decides, "benchmark": [entry.title, fingerprint(files)]}

    def identity_of_data(self, benchmark: str) -> Identity:
        """Return what decides the prepared questions of a benchmark."""
        code = fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")
        content = {"settings": self.questions_of(benchmark), "code": code}
        outputs = layout.questions(self.name, benchmark)
        return Identity(layout.identity(self.name, f"data/{benchmark}"), content, outputs)


@dataclass(frozen=True, slots=True, eq=False)
class CellConfig(Cell):
    """A cell and all that can change its results."""

    run: Run
    entry: MethodEntry  # of its method
    backbones: Mapping[str, Backbone]  # that it may ask
    limit: Limit  # of its benchmark
    # Calls have temperature 0, whatever the released code sends, but for samples of one prompt (D-GEN-2).
    is_greedy: bool
    answers_training: bool  # it answers the training questions, too
    matched: CellConfig | None  # whose cost and depth it has to meet

    @property
    def settings(self) -> dict[str, Any]:
        """Return the part of the configuration that can change the results."""
        run, entry = self.run, self.entry
        limits = None if entry.trained else {"test", "share", *(["train"] if self.answers_training else [])}
        decides = run.questions_of(self.benchmark)
        decides["limit"] = self.limit.model_dump(include=limits)
        if self.answers_training:
            decides["answer_training"] = True
        decides["endpoints"] = "simulated" if run.simulated else "served"
        if run.simulated:
            decides |= {"length_scale": run.length_scale, "simulator": _content("simulator.yaml")}
        if self.is_greedy:
            decides["decoding"] = "greedy"
        settings = {
            "cell": {name: getattr(self, name) for name in Cell.__slots__},
            "module": entry.module,
            "seed_offset": entry.seed_offset,
            "config": dict(entry.config),
            # Only keys of the file, so that a new key with a default changes no cell.
            "backbones": {
                key: backbone.model_dump(exclude={"key", *ABOUT}, exclude_unset=True)
                for key, backbone in self.backbones.items()
            },
            # In order, which decides which of them a draw hits, and which a dictionary does not compare.
            "pool": list(self.backbones),
            "preset": decides,
        }
        if entry.trained or self.backbone == POOL:
            # What other backbones of the preset cost decides it.
            settings["cost_factor"] = run.cost_factor
        if entry.trained:
            settings["encoder"] = _content("encoder.yaml")
        if self.matched is not None:
            settings["matched"] = self.matched.record
        return settings

    @property
    def record(self) -> dict[str, Any]:
        """Return the part of ``run.json`` that follows from configuration and code alone."""
        return self.identity.content["record"]

    @property
    def identity(self) -> Identity:
        """Return what decides the results, but for the questions, which are inputs of the cell."""
        settings, entry, name = self.settings, self.entry, self.run.name
        record = {
            "preset": name,
            **settings["cell"],
            "method_title": entry.title,
            "module": entry.module,
            "multi_agent": entry.multi_agent,
            "routing": entry.routing,
            "compared_cost": entry.compared_cost,
            "config_hash": digest(settings),
            "code": code_of(entry.module),
        }
        outputs = [layout.cell(name, self) / file for file in layout.cell_files(learned=entry.trained)]
        path = layout.identity(name, layout.name_of(self))
        return Identity(path, {"record": record, "settings": settings}, outputs)


@cache
def _content(name: str) -> Any:
    return read_yaml(config.FOLDER / name)

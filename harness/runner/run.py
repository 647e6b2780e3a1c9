"""Run: preset, methods, backbones and recordings as one value; and what a cell of it is made of.

:func:`harness.runner.preset.resolve` reads and checks a run once. Whatever needs a setting is given the run, or a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from harness.benchmarks import catalogue
from harness.errors import UserError, check_names, unknown
from harness.files import digest, read_yaml
from harness.fingerprint import code_of, fingerprint, source_of
from harness.llm import backbones as backbone_files
from harness.llm import endpoints
from harness.llm.backbones import ABOUT, Backbone
from harness.llm.endpoints import Endpoint
from harness.runner import config
from harness.runner.config import POOL, SINGLE, Cell, Keys, Limit, MethodEntry

PresetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Run(Keys):
    """The keys of a preset, overrides applied, with all that they name."""

    name: PresetName  # of the preset
    simulated: bool  # the backbones, also where their replies are recorded
    entries: Mapping[str, MethodEntry]  # every method that may be run, by key
    declared: Mapping[str, Backbone]  # every backbone that may be named, by key, with its ``weights``
    recorded: Sequence[Any]  # the recordings that answer calls

    @property
    def served(self) -> bool:
        """Return whether servers are asked."""
        return "served" in self.endpoints

    @property
    def settings(self) -> dict[str, Any]:
        """Return every key of the preset with its value, in the form of overrides."""
        return self.model_dump(mode="json", include=set(Keys.model_fields))

    @property
    def cost_factor(self) -> float:
        """Return the factor on a weight of cost that makes cost weigh the same in every pool (D-GMR-5).

        It is the price of a completion token of the paper's dearest backbone over that of the dearest backbone of the
        preset: exactly 1.0 for the paper's pool, and 1.0 for a pool that is free.
        """
        paper = backbone_files.load(config.FOLDER / "backbones.yaml")
        dearest = max(self.declared[key].price_out for key in self.backbones)
        return max(backbone.price_out for backbone in paper.values()) / dearest if dearest else 1.0

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
            **cell.names,
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
            "cell": self.names,
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
    def code(self) -> str:
        """Return the digest of the code that can change the results."""
        return code_of(self.entry.module)

    @property
    def record(self) -> dict[str, Any]:
        """Return the part of ``run.json`` that follows from configuration and code alone."""
        return {
            "preset": self.run.name,
            **self.names,
            "method_title": self.entry.title,
            "module": self.entry.module,
            "multi_agent": self.entry.multi_agent,
            "routing": self.entry.routing,
            "compared_cost": self.entry.compared_cost,
            "config_hash": digest(self.settings),
            "code": self.code,
        }


@cache
def _content(name: str) -> Any:
    return read_yaml(config.FOLDER / name)

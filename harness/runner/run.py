"""Run: preset, methods, backbones and recordings as one value, and the configuration of its cells.

:func:`harness.runner.preset.resolve` reads and checks a run once. Everything else receives the run or a cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import yaml
from pydantic import Field

from harness.agents import roles
from harness.benchmarks import catalogue
from harness.errors import UserError, check_names
from harness.files import digest, read_yaml, write_atomically
from harness.fingerprint import code_of, fingerprint, fingerprint_of, source_of
from harness.llm import backbones
from harness.llm.backbones import ABOUT, Backbone, Endpoint
from harness.runner import config, layout
from harness.runner.config import Keys, Limit, MethodEntry
from harness.runner.layout import POOL, SINGLE, Cell

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"
PresetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class Identity(NamedTuple):
    """Identity file of a job: settings and code that determine its outputs, as JSON.

    The file is an input of the job, which writes it just before its outputs. A plan only compares it with today's
    content. An interrupted or locked-out run therefore never changes the record of existing outputs.
    """

    path: Path
    content: Mapping[str, Any]
    outputs: Sequence[Path]

    def is_current(self) -> bool:
        """Whether the file has this content and a valid mtime, and all outputs exist."""
        try:
            is_same = self.path.stat().st_mtime <= time.time() and self.path.read_bytes() == self._text()
        except OSError:
            return False
        # Snakemake does not notice a missing output if the files made from it exist.
        return is_same and all(output.exists() for output in self.outputs)

    def write(self) -> None:
        write_atomically(self.path, self._text())

    def _text(self) -> bytes:
        return orjson.dumps(self.content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)


class Run(Keys):
    """A preset with overrides applied, and everything it names."""

    name: PresetName
    simulated: bool  # also if the recorded backbones are simulated
    entries: Mapping[str, MethodEntry]  # all methods by key
    declared: Mapping[str, Backbone]  # all backbones by key, with ``weights`` of the preset
    recorded: Sequence[Any]  # opened ``recordings``
    # Factor on cost weights (D-GMR-5): highest completion price in the paper's pool, divided by the run's highest.
    # 1.0 if the pool is free.
    cost_factor: float

    @property
    def served(self) -> bool:
        return "served" in self.endpoints

    @property
    def settings(self) -> dict[str, Any]:
        """All keys of the preset, as overrides that reproduce it."""
        return self.model_dump(mode="json", include=set(Keys.model_fields))

    def write_settings(self) -> None:
        text = yaml.safe_dump(self.settings, sort_keys=False, width=120, allow_unicode=True)
        write_atomically(layout.settings(self.name), _HEAD + text)

    def servers_of(self, keys: Iterable[str]) -> dict[str, Endpoint]:
        """Endpoints of backbones from GMR_ENDPOINTS, else the preset, else ``config/endpoints.yaml``.

        Raises UserError if an endpoint is missing or invalid.
        """
        if self.servers and not backbones.named_file():
            return backbones.choose(self.servers, keys, f"servers of preset {self.name}")
        path = Path(backbones.named_file() or config.FOLDER / "endpoints.yaml")
        return backbones.choose(read_yaml(path), keys, backbones.endpoints_file())

    def rows(self, entry: MethodEntry) -> list[str]:
        if entry.rows == "pool":
            return [POOL]
        large = self.backbones if entry.rows == "each" or self.large is None else self.large
        return [key for key in self.backbones if key in large]

    def seeds_of(self, entry: MethodEntry) -> tuple[int, ...]:
        """Training seeds of a method. Methods that do not learn have seed 0 only (D-REPORT-1)."""
        return self.seeds if entry.trained else (0,)

    def cells(self) -> list[Cell]:
        """List all cells, ordered by method, row, benchmark and seed."""
        return [
            Cell(method, benchmark, row, seed)
            for method in self.methods
            for row in self.rows(self.entries[method])
            for benchmark in self.benchmarks
            if benchmark in (self.entries[method].benchmarks or self.benchmarks)
            for seed in self.seeds_of(self.entries[method])
        ]

    def asked_again(self) -> list[Cell]:
        """Repetitions of ``single`` rows for ``noise_floor``."""
        benchmarks = [benchmark for benchmark in self.noise_floor if benchmark in self.benchmarks]
        return [Cell(SINGLE, benchmark, row, 1) for row in self.rows(self.entries[SINGLE]) for benchmark in benchmarks]

    def check_benchmark(self, benchmark: str) -> None:
        check_names("benchmark", [benchmark], self.benchmarks, f"preset {self.name}")

    def cell(self, cell: Cell) -> CellConfig:
        """Configuration of a cell. Raises UserError if the run has no such method, benchmark or row."""
        check_names("method", [cell.method], self.entries, "config/methods.yaml, and the file in `extra` of the run")
        self.check_benchmark(cell.benchmark)
        entry = self.entries[cell.method]
        rows = self.rows(entry)
        check_names("backbone", [cell.backbone], [*self.declared, POOL], "config/backbones.yaml")
        if cell.backbone not in rows:
            raise UserError(
                f"{cell.method} has no row for {cell.backbone} in preset {self.name}, only for "
                f"{', '.join(rows) or 'none'}; add it to the preset's backbones"
                f"{' and to `large`' if entry.rows == 'large' else ''}"
            )
        keys = (*(self.backbones if cell.backbone == POOL else (cell.backbone,)), *entry.further_backbones)
        matched: CellConfig | None = None
        if entry.matches is not None:
            other = self.entries[entry.matches]
            row = POOL if other.rows == "pool" else cell.backbone
            # A method that does not learn has one cell.
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
        """Settings that determine the questions. A user's benchmark adds its title, module and questions."""
        decides: dict[str, Any] = {"data": self.data, "splits": self.splits}
        if self.recordings:
            decides["recordings"] = [recording.sha256 for recording in self.recorded]
        if not catalogue.is_further(benchmark):
            return decides
        entry = catalogue.entry(benchmark)
        files = [path for path in (source_of(entry.module), Path(entry.questions or "")) if path and path.is_file()]
        return {**decides, "benchmark": [entry.title, fingerprint(files)]}

    def identity_of_data(self, benchmark: str) -> Identity:
        code = fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")
        content = {"settings": self.questions_of(benchmark), "code": code}
        outputs = layout.questions(self.name, benchmark)
        return Identity(layout.identity(self.name, f"data/{benchmark}"), content, outputs)


@dataclass(frozen=True, eq=False)
class CellConfig(Cell):
    """A cell and everything that can change its results."""

    run: Run
    entry: MethodEntry
    backbones: Mapping[str, Backbone]  # callable backbones
    limit: Limit
    is_greedy: bool  # temperature 0 except for multiple samples of one prompt (D-GEN-2)
    answers_training: bool  # also answers the training questions
    matched: CellConfig | None  # cell that sets the target cost and depth

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings that can change the results. Their hash identifies the cell."""
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
            "cell": self._names,
            "module": entry.module,
            "seed_offset": entry.seed_offset,
            "config": dict(entry.config),
            # Only keys set in the file, so that a new key with a default changes no cell.
            "backbones": {
                key: backbone.model_dump(exclude={"key", *ABOUT}, exclude_unset=True)
                for key, backbone in self.backbones.items()
            },
            # The order determines which backbone a random draw selects. The sorted keys above lose it.
            "pool": list(self.backbones),
            "preset": decides,
        }
        if entry.trained or self.backbone == POOL:
            # Depends on the prices of all backbones of the preset.
            settings["cost_factor"] = run.cost_factor
        if entry.trained:
            settings["encoder"] = _content("encoder.yaml")
        if self.matched is not None:
            settings["matched"] = self.matched.record
        if entry.key not in config.methods() and roles.FURTHER:
            settings["roles"] = {key: role.model_dump() for key, role in roles.FURTHER.items()}
        return settings

    @cached_property
    def record(self) -> dict[str, Any]:
        """Entries of ``run.json`` that follow from configuration and code."""
        entry = self.entry
        return {
            "preset": self.run.name,
            **self._names,
            "method_title": entry.title,
            **{name: getattr(entry, name) for name in ("module", "multi_agent", "routing", "compared_cost")},
            "config_hash": digest(self.settings),
            "code": code_of(entry.module),
            **({"swept": list(entry.swept)} if entry.swept else {}),
        }

    @property
    def identity(self) -> Identity:
        """Identity of the cell. Its questions are separate inputs."""
        name = self.run.name
        outputs = [layout.cell(name, self) / file for file in layout.cell_files(learned=self.entry.trained)]
        path = layout.identity(name, layout.name_of(self))
        return Identity(path, {"record": self.record, "settings": self.settings}, outputs)

    @property
    def known_benchmarks(self) -> Sequence[str]:
        """Benchmarks whose questions the cell reads. Simulated backbones know those of all benchmarks of the run."""
        return self.run.benchmarks if self.run.endpoints == "simulated" else (self.benchmark,)

    @property
    def inputs(self) -> list[Path]:
        """Files of other jobs that the cell reads: questions, and ``run.json`` of the cell to match."""
        matched = [] if self.matched is None else [layout.cell(self.run.name, self.matched) / "run.json"]
        return [*layout.questions(self.run.name, *self.known_benchmarks), *matched]

    @property
    def _names(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Cell.__slots__}


@cache
def _content(name: str) -> Any:
    return read_yaml(config.FOLDER / name)

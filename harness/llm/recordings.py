"""Recordings: bundles or result folders whose replies answer calls. They are only read, never written or executed."""

from __future__ import annotations

import functools
import logging
import re
import sqlite3
from collections import ChainMap
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson

from harness.database import CALL_LOG, VECTORS, Closing, connect, one_line
from harness.errors import UserError
from harness.files import ROOT, digest, read_yaml, sha256, temporary_prefix
from harness.llm.archive import NAME, Crate, bounded_memory, check_calls, data_of, extract, refuse_bombs
from harness.llm.call_log import CallLogReader, CallTexts
from harness.llm.encoder import VECTOR_BYTES
from harness.llm.request import Message, Reply, Request, Served
from harness.runner.layout import Cell, cell_of, name_of

if TYPE_CHECKING:
    from harness.llm.backbones import Backbone

SETTINGS = Path("config", "config.yaml")
SERVERS = "servers.json"
# Files that are tables of outcomes, and pickles, which are refused.
_TABLES = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".pkl", ".pickle")
# Characters of a prompt shown in a message.
_SHOWN = 200

logger = logging.getLogger(__name__)


class Recording:
    """A bundle, unpacked to a temporary folder, or a result folder."""

    def __init__(self, path: Path, code: str | None = None) -> None:
        self.path = self.root = path
        self.crate = Crate()
        with data_of(path), bounded_memory(path):
            if not path.is_dir():
                self._unpacked = TemporaryDirectory(prefix=temporary_prefix("recording"))
                self.root = Path(self._unpacked.name)
                self.crate = extract(path, self.root, code)
            file = next(filter(Path.is_file, (self.root / SETTINGS, self.root / "config.yaml")), None)
            if file is None:
                raise UserError(f"{path} is no recording: expected a bundle, or a folder results/PRESET of a run")
            refuse_bombs(file)
            self.settings: dict[str, Any] = read_yaml(file)
            self.preset = self.settings.pop("preset", path.name)
            if not re.fullmatch(NAME, str(self.preset)) or not isinstance(self.preset, str):
                raise UserError(f"{path}: preset {self.preset!r} is no name: letters, digits, '.', '_' and '-' alone")
            self.results = self.root if file.parent == self.root else self.root / "results" / self.preset
            try:
                check_calls(path, [log for log in self.logs() if not is_repetition(log)])
            except UserError as error:
                if not path.is_dir():
                    raise
                logger.warning("%s", error)  # A server may answer two cells differently.

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the bundle or, for a folder, of its call logs."""
        if not self.path.is_dir():
            return sha256(self.path)
        return digest([[str(log.relative_to(self.results)), sha256(log)] for log in self.logs()])

    @functools.cached_property
    def served(self) -> dict[str, Served]:
        return dict(ChainMap(*map(_described, sorted(self.results.glob(f"*/**/{SERVERS}")))))

    @property
    def simulated(self) -> bool:
        return any(model.simulated for model in self.served.values())

    @property
    def cells(self) -> list[Path]:
        return [path.parent for path in sorted(self.results.glob("cells/*/*/*/seed*/run.json"))]

    def logs(self, benchmark: str = "*") -> list[Path]:
        patterns = (f"cells/*/{benchmark}/*/seed*/{CALL_LOG}", f"tree/{benchmark}/{CALL_LOG}")
        return [path for pattern in patterns for path in sorted(self.results.glob(pattern))]

    def describe(self) -> str:
        """Summarise cells, models and settings, for a message."""
        names = dict.fromkeys("/".join(log.parent.relative_to(self.results).parts[:2]) for log in self.logs())
        deciding = ("benchmarks", "splits", "decoding", "limit")
        settings = [f"{key} {self.settings[key]}" for key in deciding if key in self.settings]
        return f"{self.path.name} holds {', '.join(names)} by {', '.join(self.served)} ({', '.join(settings)})"

    @functools.cached_property
    def unlogged(self) -> dict[str, CallTexts]:
        """Prompt and reply of calls that no log has, by key. Only a table has such calls."""
        return {}


class TableRecording(Recording):
    """A table of outcomes: one answer of each model to each question, of benchmarks that their file grades."""

    def __init__(self, path: Path) -> None:
        from harness.benchmarks import outcome_table  # pandas takes half a second.

        self.path, self.crate, self.results = path, Crate(), path
        with bounded_memory(path):
            self.table = outcome_table.opened(path)
        about = {"parameters_b": 0, "description": f"A model of {path.name}."}
        # Prices scale cost weights (D-GMR-5), as if an answer took 450 tokens. The file has the costs.
        pool = {
            model: {"model": model, **about, "price": {"input": 0.0, "output": (cost or 0.0) * 1e6 / 450}}
            for model, cost in self.table.models.items()
        }
        names = {"benchmarks": [*self.table.benchmarks], "backbones": [*pool], "pool": pool}
        self.settings = {"data": "real", "splits": "official", **names}
        self.served = {model: Served(model, f"table {path.name}") for model in pool}

    def describe(self) -> str:
        return f"{self.path.name} is a table of outcomes, which answers the plain question alone (context.ask_question)"

    @functools.cached_property
    def unlogged(self) -> dict[str, CallTexts]:
        return {
            digest([benchmark, id_, model]): CallTexts(
                (Message("user", part.questions[id_][0]),), outcome.text or model
            )
            for benchmark, part in self.table.benchmarks.items()
            for (id_, model), outcome in part.answers.items()
        }


def _described(path: Path) -> dict[str, Served]:
    with data_of(path):
        found = {model: Served(**entry) for model, entry in orjson.loads(path.read_bytes())["served"].items()}
        if not all(isinstance(served.details, dict) for served in found.values()):
            raise ValueError("details of a server are no mapping")
        return found


def is_repetition(log: Path) -> bool:
    """Whether a call log is of a cell that asks again on purpose (preset key ``noise_floor``)."""
    cell = cell_of(log.parent)
    return cell is not None and cell.is_repetition


def located(path: str) -> Path:
    """Resolve the path of a recording relative to the current folder or, if it is not there, to the checkout."""
    return (Path(path) if Path(path).exists() else ROOT / path).absolute()


@functools.cache
def opened(path: Path, code: str | None = None) -> Recording:
    return TableRecording(path) if path.name.endswith(_TABLES) and path.is_file() else Recording(path, code)


class Recordings(Closing):
    """Recorded replies and embeddings for one cell."""

    def __init__(self, recordings: Sequence[Recording], cell: Cell) -> None:
        self._recordings, self._cell = recordings, cell
        sources = {log: recording.path for recording in recordings for log in recording.logs(cell.benchmark)}
        # The same cell first. A repetition of single calls has replies of its own, which answer no other cell.
        own = [log for log in sources if log.parent.parts[-5:] == Path(name_of(cell)).parts]
        others = [log for log in sources if log not in own and not cell.is_repetition and not is_repetition(log)]
        # A server that was started again may describe itself differently from cell to cell.
        beside = [_described(path) for log in own if (path := log.with_name(SERVERS)).is_file()]
        self.served: Mapping[str, Served] = ChainMap(*beside, *(each.served for each in recordings))  # by model
        self._logs: dict[str, CallLogReader] = {}  # by key of a call
        self._vectors: list[sqlite3.Connection] = []
        self.found: set[str] = set()
        with ExitStack() as stack, bounded_memory(", ".join(each.path.name for each in recordings)):
            for log in reversed([*own, *others]):
                reader = stack.enter_context(CallLogReader(log, sources[log]))
                self._logs |= dict.fromkeys(reader.all_keys(), reader)
            for path in (path for each in recordings for path in sorted(each.results.rglob(VECTORS))):
                with one_line(path, "fetch the recording again"):
                    self._vectors.append(stack.enter_context(closing(connect(path, writes=False))))
            self._open = stack.pop_all()

    def __contains__(self, key: str) -> bool:
        return key in self._logs

    def get(self, key: str) -> Reply | None:
        if key not in self._logs:
            return None
        self.found.add(key)
        return self._logs[key].get(key)

    def row(self, key: str) -> tuple[Any, ...]:
        return next(self._logs[key].rows("WHERE key = ?", key))

    def texts(self, key: str) -> CallTexts | None:
        if key in self._logs:
            return self._logs[key].texts(key)
        return ChainMap(*(each.unlogged for each in self._recordings)).get(key)

    def pinned(self, backbone: Backbone) -> Backbone:
        """Pin a backbone to its recorded revision, so that a server with another one is refused."""
        revision = self.served[backbone.model].revision if backbone.model in self.served else None
        return backbone.model_copy(update={"revision": revision}) if revision else backbone

    def vector(self, key: bytes) -> bytes | None:
        for database in self._vectors:
            with one_line(Path(VECTORS), "fetch the recording again"):
                for (value,) in database.execute("SELECT value FROM embeddings WHERE key = ?", (key,)):
                    if not isinstance(value, bytes) or len(value) != VECTOR_BYTES:
                        raise ValueError("a value is no vector")
                    return value
        return None

    def missing(self, request: Request) -> UserError:
        prompt, told = " ".join(request.messages[-1].content.split()), request.metadata
        what = f"for {told.purpose}{f' as {told.role}' if told.role else ''}" if told else "once more"
        return UserError(
            f"{self._cell}: {len(self.found)} of its calls are recorded so far; call {request.key[:12]}, which asks "
            f"{request.model} {what} (max_tokens {request.max_tokens}), is not; its prompt "
            f"begins {prompt[:_SHOWN]!r}. {'; '.join(each.describe() for each in self._recordings)}",
            "use the settings of the recording, or let a server close the gap (endpoints: [recorded, served])",
        )

    def close(self) -> None:
        self._open.close()

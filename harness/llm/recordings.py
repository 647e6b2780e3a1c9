"""Recordings: bundles or result folders whose replies answer calls. They are only read, never written or executed."""

from __future__ import annotations

import functools
import hashlib
import logging
import lzma
import re
import resource
import zlib
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import orjson
import yaml

from harness.database import CALL_LOG, VECTORS, Closing, connect, one_line
from harness.errors import UserError
from harness.files import ROOT, digest, read_yaml, sha256
from harness.llm.call_log import CallLogReader, CallTexts
from harness.llm.embeddings import VECTOR_BYTES
from harness.llm.request import Reply, Request, Served
from harness.unfinished import temporary_prefix

if TYPE_CHECKING:
    from harness.llm.backbones import Backbone
    from harness.runner.layout import Cell

METADATA = "ro-crate-metadata.json"
SETTINGS = Path("config", "config.yaml")
SERVERS = "servers.json"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
# Files of a bundle, except the code of its maker's own methods.
_MEMBER = re.compile(
    rf"config/config\.yaml|results/{_NAME}/(vectors\.sqlite|audit\.json|data/{_NAME}"
    rf"|(cells/{_NAME}/{_NAME}/{_NAME}/seed[0-9]+|tree/{_NAME})/([a-z_]+\.(json|parquet)|(calls|vectors)\.sqlite))"
)
# Limits on the unpacked size: bytes, and a multiple of the bundle's size (3 for those in evidence/) from some bytes on.
_LARGEST, _MOST, _SMALL = 4 << 30, 50, 64 << 20
# Bytes of memory that opening a recording may take, and values of one of its tables.
_MEMORY, _VALUES = 2 << 30, 8_000_000
# Maximum depth of nested settings.
_DEEPEST = 20
# Characters of a prompt shown in a message.
_SHOWN = 200

# Entities of an RO-Crate by ``@id``. ``./`` is the root data entity.
Crate = dict[str, dict[str, Any]]

logger = logging.getLogger(__name__)


_MALFORMED = (
    *(BadZipFile, zlib.error, lzma.LZMAError, EOFError, yaml.YAMLError),
    *(RuntimeError, LookupError, TypeError, ValueError, AttributeError),
)


@contextmanager
def data_of(path: Path) -> Iterator[None]:
    """Convert errors that a malformed file raises in the block to a one-line UserError."""
    try:
        yield
    except _MALFORMED as error:
        reason = " ".join(f"{error}".split()) or type(error).__name__
        raise UserError(f"{path} is damaged or no bundle of this suite ({reason}); fetch it again") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def bounded_memory(name: object) -> Iterator[None]:
    """Raise UserError if the block takes too much memory, which the kernel counts, to open the recording ``name``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    statm = Path("/proc/self/statm")
    most = _MEMORY + (int(statm.read_text().split()[5]) * resource.getpagesize() if statm.exists() else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
    try:
        yield
    except MemoryError as error:
        raise UserError(f"{name} takes more than {_MEMORY >> 30} GB of memory, as no recording does") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def extract(path: Path, folder: Path, code: str | None = None) -> Crate:
    """Extract a bundle to a folder, check every file against the manifest, and return the manifest.

    Extracts only known files, up to a bounded size, and the folder of ``code`` (a file of the maker's own methods).
    Raises UserError if the bundle is unreadable, truncated or altered.
    """
    with data_of(path), ZipFile(path) as archive:
        with archive.open(METADATA) as manifest:
            crate: Crate = {entity["@id"]: entity for entity in orjson.loads(manifest.read(_SMALL))["@graph"]}
        crate["./"] = {"description": str(crate["./"]["description"]), "hasPart": [*crate["./"]["hasPart"]]}
        files = {name: entity for name, entity in crate.items() if entity.get("@type") == "File"}
        if others := {*archive.namelist()} ^ {METADATA, *files}:
            raise UserError(f"{path} is not what its manifest says: {min(others)} is not in both; fetch it again")
        folder.mkdir(exist_ok=True)
        left, part = min(_LARGEST, max(_SMALL, _MOST * path.stat().st_size)), folder / "part"
        for name, entity in files.items():
            most = left if name.endswith((".sqlite", ".parquet")) else min(left, _SMALL)
            with archive.open(name) as member, part.open("wb") as file:
                while (piece := member.read(1 << 20)) and file.tell() <= most:
                    file.write(piece)
            if (size := part.stat().st_size) > most:
                raise UserError(f"{path} unpacks to more than any bundle does, in {name}; delete it")
            left -= size
            if not {"contentSize": str(size), "sha256": sha256(part)}.items() <= entity.items():
                raise UserError(f"{path} was altered: {name} is not what its manifest says; fetch it again")
            if _MEMBER.fullmatch(name) or (code and _is_beside(name, code)):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                if name.endswith(".parquet"):
                    from pandas import read_parquet

                    frame = read_parquet(part)
                    # A categorical column takes little here and much as texts.
                    if frame.size > _VALUES or "category" in map(str, frame.dtypes):
                        raise ValueError(f"{name} has too many values, or values of another type")
                part.rename(folder / name)
    return crate


def _is_beside(name: str, code: str) -> bool:
    path = Path(name)
    return path.is_relative_to(Path(code).parent) and ".." not in path.parts and not path.is_absolute()


def checksum(content: bytes) -> dict[str, str]:
    return {"contentSize": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}


class Recording:
    """A bundle, unpacked to a temporary folder, or a result folder."""

    def __init__(self, path: Path, code: str | None = None) -> None:
        self.path, self.crate = path, Crate()
        folder = path
        if not path.is_dir():
            self._unpacked = TemporaryDirectory(prefix=temporary_prefix("recording"))
            folder = Path(self._unpacked.name)
            with bounded_memory(path):
                self.crate = extract(path, folder, code)
        self.root = folder
        found = [each for each in (folder / SETTINGS, folder / "config.yaml") if each.is_file()]
        if not found:
            raise UserError(f"{path} is no recording: expected a bundle, or a folder results/PRESET of a run")
        with data_of(path), bounded_memory(path):
            _refuse_bombs(found[0])
            settings = read_yaml(found[0])
        if not isinstance(settings, dict):
            raise UserError(f"{path}: its {found[0].name} holds no keys of a preset")
        self.preset = settings.pop("preset", path.name)
        if not re.fullmatch(_NAME, str(self.preset)) or not isinstance(self.preset, str):
            raise UserError(f"{path}: preset {self.preset!r} is no name: letters, digits, '.', '_' and '-' alone")
        self.settings: Mapping[str, Any] = settings
        self.results = folder if found[0].parent == folder else folder / "results" / self.preset

    @functools.cached_property
    def sha256(self) -> str:
        """SHA-256 of the bundle or, for a folder, of its call logs."""
        if not self.path.is_dir():
            return sha256(self.path)
        return digest([[str(log.relative_to(self.results)), sha256(log)] for log in self.logs()])

    @functools.cached_property
    def served(self) -> dict[str, Served]:
        found: dict[str, Served] = {}
        for path in sorted(self.results.glob(f"*/**/{SERVERS}")):
            found = _described(path) | found
        return found

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
        """Summarise methods, benchmarks, models and settings, for a message."""
        runs = [path.parent.relative_to(self.results).parts for path in self.logs()]
        methods = dict.fromkeys(parts[1] if parts[0] == "cells" else "all first steps" for parts in runs)
        benchmarks = dict.fromkeys(parts[2] if parts[0] == "cells" else parts[1] for parts in runs)
        pool = self.settings.get("pool") or {}
        limits = dict.fromkeys(f"max_tokens {entry.get('max_tokens')}" for entry in pool.values())
        settings = [f"{key} {self.settings[key]}" for key in ("splits", "decoding") if key in self.settings]
        return (
            f"{self.path.name} holds {', '.join(methods)} on {', '.join(benchmarks)} by {', '.join(self.served)} "
            f"({', '.join([*settings, *limits])})"
        )


def _refuse_bombs(path: Path) -> None:
    """Raise ValueError if a YAML file is nested deeply or repeats parts by reference, as no settings of a run do."""
    depth = 0
    for event in yaml.parse(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
            raise ValueError(f"{path.name} is nested deeply or has references")


def _described(path: Path) -> dict[str, Served]:
    with data_of(path):
        found = {model: Served(**entry) for model, entry in orjson.loads(path.read_bytes())["served"].items()}
        if not all(isinstance(served.details, dict) for served in found.values()):
            raise ValueError("details of a server are no mapping")
        return found


def located(path: str) -> Path:
    """Resolve the path of a recording relative to the current folder or, if it is not there, to the checkout."""
    return (Path(path) if Path(path).exists() else ROOT / path).absolute()


@functools.cache
def opened(path: Path, code: str | None = None) -> Recording:
    return Recording(path, code)


class Recordings(Closing):
    """Recorded replies and embeddings for one cell. ``prompts`` is the digest of its method's prompt texts."""

    def __init__(self, recordings: Sequence[Recording], cell: Cell, prompts: str) -> None:
        self._recordings, self._cell, self._prompts = recordings, cell, prompts
        sources = {log: recording.path for recording in recordings for log in recording.logs(cell.benchmark)}
        logs = [*sources]
        same = ("cells", cell.method, cell.benchmark, cell.backbone, f"seed{cell.seed}")
        # The same cell first, so that its repeated single calls keep their own replies.
        logs.sort(key=lambda log: log.parent.parts[-5:] != same)
        if cell.is_repetition:
            logs = [log for log in logs if log.parent.parts[-5:] == same]
        own = [log.with_name(SERVERS) for log in logs if log.parent.parts[-5:] == same]
        # A server that was started again may describe itself differently from cell to cell.
        described = [*(_described(path) for path in own if path.is_file()), *(each.served for each in recordings)]
        self._served: Mapping[str, Served] = ChainMap(*described)
        self._index: dict[str, int] = {}
        self._checksums: dict[str, int] = {}
        self._differing: set[str] = set()  # calls with differing replies, of which neither is the cell's own
        self.found: set[str] = set()
        with ExitStack() as stack, bounded_memory(", ".join(each.path.name for each in recordings)):
            self._logs = [stack.enter_context(CallLogReader(log, sources[log])) for log in logs]
            self._vectors = []
            for path in (path for each in recordings for path in sorted(each.results.rglob(VECTORS))):
                with one_line(path, "fetch the recording again"):
                    self._vectors.append(stack.enter_context(closing(connect(path, writes=False))))
            is_same = [log.parent.parts[-5:] == same for log in logs]
            for number, log in enumerate(self._logs):
                for key, check in log.checksums():
                    if self._index.setdefault(key, number) == number:
                        self._checksums[key] = check
                    elif self._checksums[key] != check and is_same[number] == is_same[self._index[key]]:
                        self._differing.add(key)
            self._open = stack.pop_all()

    def __contains__(self, key: str) -> bool:
        return key in self._index

    def get(self, key: str) -> Reply | None:
        if key not in self._index:
            return None
        self.found.add(key)
        return self._logs[self._index[key]].get(key)

    def row(self, key: str) -> tuple[Any, ...]:
        return next(self._logs[self._index[key]].rows("WHERE key = ?", key))

    def texts(self, key: str) -> CallTexts | None:
        return self._logs[self._index[key]].texts(key) if key in self._index else None

    def served(self, model: str) -> Served | None:
        return self._served.get(model)

    def pinned(self, backbone: Backbone) -> Backbone:
        """Pin a backbone to its recorded revision, so that a server with another one is refused."""
        recorded = self.served(backbone.model)
        revision = recorded.revision if recorded is not None else None
        return backbone.model_copy(update={"revision": revision}) if revision else backbone

    def vector(self, key: bytes) -> bytes | None:
        for database in self._vectors:
            with one_line(Path(VECTORS), "fetch the recording again"):
                row = database.execute("SELECT value FROM embeddings WHERE key = ?", (key,)).fetchone()
                if row is not None and not (isinstance(row[0], bytes) and len(row[0]) == VECTOR_BYTES):
                    raise ValueError("a value is no vector")
            if row is not None:
                return row[0]
        return None

    def missing(self, request: Request) -> UserError:
        prompt, told = " ".join(request.messages[-1].content.split()), request.metadata
        what = f"for {told.purpose}{f' as {told.role}' if told.role else ''}" if told else "once more"
        return UserError(
            f"{self._cell}: {len(self.found)} of its calls are recorded so far; call {request.key[:12]}, which asks "
            f"{request.model} {what} (max_tokens {request.max_tokens}), is not{self._other_prompts()}; its prompt "
            f"begins {prompt[:_SHOWN]!r}. {'; '.join(each.describe() for each in self._recordings)}",
            "use the settings of the recording, or let a server close the gap (endpoints: [recorded, served])",
        )

    def report_differing(self) -> None:
        """Warn about calls of the cell whose recorded replies differ."""
        if several := sorted(self._differing & self.found):
            what = f"{len(several)} of its calls, such as {several[0][:12]}, were recorded more than once"
            logger.warning("%s: %s with other replies, of which the first counts", self._cell, what)

    def close(self) -> None:
        self._open.close()

    def _other_prompts(self) -> str:
        """Return a remark if the recorded runs of this method used other prompts."""
        runs = f"cells/{self._cell.method}/{self._cell.benchmark}/*/*/run.json"
        for recording in self._recordings:
            for path in sorted(recording.results.glob(runs)):
                with data_of(path):
                    recorded = orjson.loads(path.read_bytes())["prompts"]
                if recorded != self._prompts:
                    return ", and its prompts are not those recorded"
        return ""

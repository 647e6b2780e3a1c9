"""Unpack a bundle, which may be a stranger's: known files within bounds, as listed. Check what its calls claim."""

import hashlib
import lzma
import re
import resource
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from zipfile import BadZipFile, ZipFile

import orjson
import yaml

from harness.database import one_line
from harness.errors import UserError
from harness.files import sha256
from harness.llm.call_log import CallLogReader, request_of

METADATA = "ro-crate-metadata.json"
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
# Files of a bundle, except the code of its maker's own methods.
_MEMBER = re.compile(
    rf"config/config\.yaml|results/{NAME}/(vectors\.sqlite|data/{NAME}"
    rf"|(cells/{NAME}/{NAME}/{NAME}/seed[0-9]+|tree/{NAME})/([a-z_]+\.(json|parquet)|(calls|vectors)\.sqlite))"
)
# Limits on the unpacked size: bytes, and a multiple of the bundle's size (3 for those in evidence/) from some bytes on.
_LARGEST, _MOST, _SMALL = 4 << 30, 50, 64 << 20
# Bytes of memory that opening a recording may take, and values of one of its tables.
_MEMORY, _VALUES = 2 << 30, 8_000_000
# Maximum depth of nested settings.
_DEEPEST = 20
# Fewest calls of a model whose token counts are judged.
_FEWEST = 20
# Share of a model's calls from which it is named: those with equal token counts, and those far from its usual ones.
_MOST_EQUAL, _MOST_FAR = 0.5, 0.05
# Bytes of text per token: range of a model's median (2.9 to 4.0 in evidence/), and the factor to it that is far.
_USUAL, _FAR = (1.5, 6.0), 4.0

# Entities of an RO-Crate by ``@id``. ``./`` is the root data entity.
Crate = dict[str, dict[str, Any]]

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
        whole = crate["./"]
        whole |= {"description": str(whole["description"]), "hasPart": [*whole["hasPart"]]}
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
            if is_member(name) or (code and _is_beside(name, code)):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                if name.endswith(".parquet"):
                    from pandas import read_parquet

                    frame = read_parquet(part)
                    # A categorical column takes little here and much as texts.
                    if frame.size > _VALUES or "category" in map(str, frame.dtypes):
                        raise ValueError(f"{name} has too many values, or values of another type")
                part.rename(folder / name)
    return crate


def is_member(name: str) -> bool:
    """Whether a bundle has a file of this name, other than code of its maker."""
    return _MEMBER.fullmatch(name) is not None


def _is_beside(name: str, code: str) -> bool:
    path = Path(name)
    return path.is_relative_to(Path(code).parent) and ".." not in path.parts and not path.is_absolute()


def checksum(content: bytes) -> dict[str, str]:
    return {"contentSize": str(len(content)), "sha256": hashlib.sha256(content).hexdigest()}


def refuse_bombs(path: Path) -> None:
    """Raise ValueError if a YAML file is nested deeply or repeats parts by reference, as no settings of a run do."""
    depth = 0
    for event in yaml.parse(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
            raise ValueError(f"{path.name} is nested deeply or has references")


def check_calls(recording: Path, logs: Iterable[Path]) -> None:
    """Raise UserError if a stored prompt is not that of its call, or a call has two replies at temperature 0."""
    found: dict[str, tuple[Path, int]] = {}
    for path in logs:
        with CallLogReader(path, recording) as log, one_line(recording, "fetch it again"):
            for text, key, _, _, *counts, _, error, reply, _, _, _ in log.rows("ORDER BY number"):
                request = request_of(key, text)
                if error is not None:
                    continue
                # The stored CRC-32 is not compared: a text can be made to have it.
                first, digest = found.setdefault(key, (path, hash((reply, *counts))))
                # A request without its prompt is unchecked, and counts as one at temperature 0.
                if digest != hash((reply, *counts)) and not (request["messages"] and request["temperature"]):
                    cells = " and ".join("/".join(each.parent.parts[-4:]) for each in (first, path))
                    raise UserError(
                        f"{recording} has two replies to call {key[:12]} at temperature 0, in {cells}, so that one "
                        "method may get better replies than another",
                        "let one run ask, and the others use its replies (`recordings`)",
                    )


def odd_counts(logs: Iterable[Path]) -> Iterator[str]:
    """Name the models of a recording whose token counts are mostly equal, or far from the length of the text.

    Failed calls and prompts that are withheld do not count.
    """
    counts = defaultdict[str, Counter[tuple[int, int]]](Counter)
    ratios = defaultdict[tuple[str, str], list[float]](list)
    for path in logs:
        with CallLogReader(path) as log, one_line(path, "fetch the recording again"):
            for text, _, _, _, asked, written, _, _, _, reply, _, _, reasoning in log.rows("WHERE error IS NULL"):
                request = orjson.loads(text)
                counts[model := request["model"]][asked, written] += 1
                sent = "".join(message["content"] for message in request["messages"])
                for name, said, tokens in (("prompt", sent, asked), ("reply", reply, written - (reasoning or 0))):
                    if said:
                        ratios[name, model].append(len(said.encode()) / max(tokens, 1))
    for model, found in counts.items():
        (pair, number), n = found.most_common(1)[0], found.total()
        if n >= _FEWEST and number > _MOST_EQUAL * n:
            yield f"{number} of {n} calls of {model} have the same token counts, {pair[0]} and {pair[1]}"
    for (name, model), values in ratios.items():
        usual = median(values)
        far = sum(not usual / _FAR <= value <= usual * _FAR for value in values) / len(values)
        if len(values) >= _FEWEST and (far > _MOST_FAR or not _USUAL[0] <= usual <= _USUAL[1]):
            what = f"a {name} of {model} has {usual:.1f} bytes per token in the middle, {far:.0%} are far from it"
            yield f"{what}: the token counts may not be those of the text"

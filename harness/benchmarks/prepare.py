"""Prepare the questions of a preset: load, check and split them, and write two files for all later jobs.

The data come from the embedded file, a local mirror, an installed package, the hub or a user's file. Count and checksum
must match ``config/benchmarks.yaml``.
"""

import csv
import gzip
import importlib.util
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import orjson
from pydantic import TypeAdapter, ValidationError

from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import BenchmarkEntry, benchmark, entry
from harness.benchmarks.items import Item, Split, checksum
from harness.errors import UserError, making
from harness.files import first_error, write_atomically

DATA_DIR = "GMR_DATA_DIR"
EMBEDDED = Path(__file__).with_name("data")
# Prefixes of ``source`` for questions from a recording.
FOREIGN = "recording "  # that could not be compared with the benchmark's own
COPY = "copy in "  # that are the benchmark's own, by the checksums in config/benchmarks.yaml


@dataclass(frozen=True, slots=True)
class Prepared:
    """The questions of a benchmark as a preset uses them."""

    benchmark: str
    title: str  # printed in tables; begins with "mini-" for embedded data
    data: str  # ``"embedded"`` or ``"real"``
    source: str
    splits: str
    count: int  # of the whole benchmark, like ``checksum``
    checksum: str
    split_checksum: str
    pool_checksum: str
    pool: list[Item]  # the questions of the split
    train: list[Item]
    test: list[Item]

    @property
    def is_foreign(self) -> bool:
        """Whether questions and their tests come from a recording and were not verified."""
        return self.source.startswith(FOREIGN)

    @property
    def drawn(self) -> Split:
        """Return the ids of the training and test questions."""
        return Split(*(tuple(item.id for item in items) for items in (self.train, self.test)))


_ITEM = TypeAdapter(Item)
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
# What `normalise` may raise for a faulty record.
_FAULTS = (LookupError, TypeError, ValueError, AttributeError)


def prepare(benchmark_key: str, data: str, splits: str, out_items: Path, out_manifest: Path) -> None:
    """Load, check and split a benchmark. Write the questions of the split as JSON lines, and a manifest.

    Raises UserError like :func:`load_items` and :func:`split_items`, or if the split has no test question.
    """
    declaration, loaded = entry(benchmark_key), load_items(benchmark_key, data)
    split = split_items(benchmark_key, data, loaded.items, splits)
    if not split.test:
        raise UserError(f"{loaded.source} has no test question of {declaration.title}; put some there")
    members = {*split.train, *split.test}
    pool = [item for item in loaded.items if item.id in members]
    is_mini = data == "embedded" and declaration.questions is None
    manifest = {
        "benchmark": benchmark_key,
        "title": f"mini-{declaration.title}" if is_mini else declaration.title,
        "data": data,
        "source": loaded.source,
        "splits": splits,
        "count": len(loaded.items),
        "checksum": loaded.checksum,
        "split_checksum": split.checksum,
        "pool_checksum": checksum(pool),
        "train": split.train,
        "test": split.test,
    }
    write_atomically(out_items, b"".join(item.to_json() + b"\n" for item in pool))
    write_atomically(out_manifest, orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


def read(manifest: Path, items: Path) -> Prepared:
    """Read the files of :func:`prepare`. Raises UserError if a file is missing or damaged, or they do not match."""
    try:
        content = orjson.loads(manifest.read_bytes())
        pool = [_ITEM.validate_json(line) for line in items.read_bytes().splitlines()]
        by_id = {item.id: item for item in pool}
        train, test = ([by_id[id_] for id_ in content.pop(name)] for name in ("train", "test"))
        prepared = Prepared(**content, pool=pool, train=train, test=test)
        if checksum(pool) != prepared.pool_checksum:
            raise ValueError("another checksum")
    except OSError as error:
        raise UserError(f"{error.filename} cannot be read ({error.strerror})", making(error.filename)) from error
    except _FAULTS as error:
        what = f"{items} does not hold the questions that {manifest} lists ({_one_line(error)})"
        raise UserError(what, "delete both and prepare again") from error
    return prepared


def is_known(key: str, prepared: Prepared) -> bool:
    """Check whether questions and manifest are those of the whole real benchmark, by config/benchmarks.yaml."""
    declared, expected = entry(key), entry(key).expected
    if prepared.data != "real" or expected is None:
        return False
    known = (declared.title, expected.count, expected.checksum, expected.splits.get(prepared.splits))
    # The manifest may come from a stranger, and tables print what it says.
    stated = (prepared.title, prepared.count, prepared.checksum, prepared.split_checksum)
    return known == stated == (declared.title, len(prepared.pool), checksum(prepared.pool), prepared.drawn.checksum)


def is_at_hand(key: str, data: str) -> bool:
    location = _location(entry(key), data)
    return location is not None and location[0].is_file()


class LoadedItems(NamedTuple):
    """All items of a benchmark, in upstream order."""

    items: list[Item]
    lines: Sequence[str]  # of the items in their file, such as "line 7", for messages
    source: str  # description that is equal on every machine
    checksum: str  # computed by :func:`harness.benchmarks.items.checksum`


def load_items(key: str, data: str) -> LoadedItems:
    """Load a benchmark. Raises UserError if its data are missing, or count or checksum is not as expected."""
    declaration = entry(key)
    records, source = _load(declaration, data)
    items, lines, line = dict[str, Item](), dict[str, str](), ""
    try:
        made = benchmark(key).normalise([*records.values()])
        if len(made) != len(records):
            records = {f"question {number}": {} for number in range(1, len(made) + 1)}
        for (line, record), item in zip(records.items(), made, strict=True):
            # Validated as in :func:`read`, so that no cell later finds a field of the wrong type.
            items[line] = _ITEM.validate_json(item.to_json())
            if lines.setdefault(item.id, line) != line:
                raise ValueError(f"the id {item.id!r} is that of {lines[item.id]}, too")
            if declaration.questions is not None:
                _check_own(item, record)
    except _FAULTS as error:
        cure = "use upstream's file" if declaration.questions is None else f"correct it, or {declaration.module}.py"
        line = line or _first_faulty(benchmark(key), records)
        problem = f"{source}, {line}: {_fault(error, records.get(line, {}))}"
        raise UserError(f"{problem}; expected the schema of {declaration.title}, {cure}") from error
    digest, expected = checksum(items.values()), declaration.expected
    if data == "real" and expected and (len(items), digest) != (expected.count, expected.checksum):
        raise UserError(
            f"{source} gives {len(items)} {declaration.title} questions with checksum {digest[:12]}; expected "
            f"{expected.count} with {expected.checksum[:12]}. It is cut off, altered or not the right file",
            f"use upstream's unchanged file {declaration.mirror}",
        )
    return LoadedItems([*items.values()], [*items], source, digest)


def _first_faulty(bench: Benchmark, records: Mapping[str, Any]) -> str:
    """Return the line of the first record that cannot be converted alone."""
    for line, record in records.items():
        try:
            bench.normalise([record])
        except _FAULTS:
            return line
    return "all lines"


def _fault(error: Exception, record: Mapping[str, Any]) -> str:
    if isinstance(error, KeyError):
        return f"a record lacks the field {error}, it has {', '.join(record)}"
    if not isinstance(error, ValidationError):
        return str(error)
    is_list = isinstance(error.errors()[0]["input"], list)
    several = " (of several right answers name one, and let `same` accept the others)" if is_list else ""
    return f"an item that `normalise` returned is invalid: {first_error(error)}{several}"


def _check_own(item: Item, record: Mapping[str, Any]) -> None:
    """Raise ValueError for a question without id or gold answer, or with options that it does not show."""
    nulls = {"", *(str(value) for value in record.values() if value is None or value != value)}  # NaN, too
    if {item.id.strip(), item.gold.strip()} & nulls:
        raise ValueError(f"the id {item.id!r} or the gold answer {item.gold!r} is empty")
    if hidden := [option for option in item.options if option not in item.question]:
        raise ValueError(f"`question` does not show the option {hidden[0]!r}, and prompts show `question` alone")


def split_items(key: str, data: str, items: list[Item], kind: str) -> Split:
    """Split questions with :meth:`Benchmark.split`. Raises UserError if checksum or kind is not as expected."""
    if data == "embedded" and kind != "official":
        raise UserError(f"splits: {kind!r} does not fit data 'embedded', which has its own sizes; use 'official'")
    split, declared = benchmark(key).split(items, kind), entry(key).expected
    expected = declared and declared.splits.get(kind)
    if data == "real" and declared and split.checksum != expected:
        raise UserError(
            f"{entry(key).title}: the {kind} split has checksum {split.checksum[:12]}; config/benchmarks.yaml expects "
            f"{str(expected)[:12]}. Restore that entry, or put the new checksum there if the split was meant to change"
        )
    return split


def _location(declaration: BenchmarkEntry, data: str) -> tuple[Path, str] | None:
    """Return path and source of the data: for real data ``GMR_DATA_DIR``, else a package, else None for the hub."""
    if declaration.questions is not None:
        return Path(declaration.questions), f"file {Path(declaration.questions).name}"
    if data == "embedded":
        return EMBEDDED / f"{declaration.key}.jsonl", "embedded"
    if folder := os.environ.get(DATA_DIR):
        return Path(folder).expanduser() / declaration.mirror, f"mirror {declaration.mirror}"
    if declaration.package is None:
        return None
    spec = importlib.util.find_spec(declaration.package.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise UserError(f"{declaration.title} comes with the package {declaration.package}; install it")
    return Path(spec.origin).parent / "data" / "HumanEval.jsonl.gz", f"package {declaration.package}"


def _load(declaration: BenchmarkEntry, data: str) -> tuple[Mapping[str, Any], str]:
    """Load records by line, and describe their source."""
    if (location := _location(declaration, data)) is None:
        return _load_from_hub(declaration)
    path, source = location
    if benchmark(declaration.key).names_models:
        return {}, f"table {path.name}"
    if not path.is_file():
        cure = f"put the questions of {declaration.title} there, or correct `questions` of its entry or {DATA_DIR}"
        raise UserError(f"{path} does not exist", cure)
    return _read_file(path), source


def _read_file(path: Path) -> dict[str, Any]:
    """Read parquet, CSV, TSV or JSON lines as records by line. Raises UserError if the file is damaged."""
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return {f"row {number}": row for number, row in enumerate(parquet.read_table(path).to_pylist(), 1)}
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = io.StringIO(content.decode("utf-8-sig"), newline=None)
        separator = _SEPARATORS.get(Path(path.name.removesuffix(".gz")).suffix)
        records = _rows(text, separator) if separator else _objects(text)
        return {f"line {number}": record for number, record in records}
    # ArrowInvalid and UnicodeDecodeError are ValueErrors, BadGzipFile is an OSError.
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = " ".join(str(error).split())
        cure = "correct it and save it as UTF-8 or, if it is upstream's or cut off, fetch it again"
        raise UserError(f"{path}, {reason}", cure) from error


def _rows(text: TextIO, separator: str) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a table by line; its header names the columns. Raises ValueError for the first faulty row."""
    rows = csv.DictReader(text, delimiter=separator, strict=True)
    try:
        if len({*(rows.fieldnames or ())}) < len(rows.fieldnames or ()):
            raise csv.Error("two columns have the same name")
        for row in rows:
            if None in row or None in row.values():
                raise csv.Error(f"it has not the {len(rows.fieldnames or ())} cells of the header")
            yield rows.line_num, row
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error


def _objects(text: TextIO) -> Iterator[tuple[int, Any]]:
    """Yield the JSON objects of a text by line. Raises ValueError for the first line with anything else."""
    for number, line in enumerate(text, 1):
        if line.strip():
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number}: {error.msg} (column {error.colno}), no JSON object") from error
            if not isinstance(record, dict):
                raise ValueError(f"line {number}: a {type(record).__name__}, where each line is one JSON object")
            yield number, record


def _load_from_hub(declaration: BenchmarkEntry) -> tuple[Mapping[str, Any], str]:
    # The import takes a second.
    from datasets import concatenate_datasets, disable_progress_bars, load_dataset

    disable_progress_bars()
    hub: Any = declaration.hub  # not None: the entry has no questions
    address = f"{hub.repo}@{hub.revision or 'newest'}"
    try:
        parts = [load_dataset(hub.repo, config, revision=hub.revision, split=hub.split) for config in hub.configs]
    except Exception as error:  # half a dozen libraries raise their own exceptions here
        raise UserError(
            f"{declaration.title} cannot be loaded from the hub, {address} ({_one_line(error)}); "
            f"connect to the network, or set {DATA_DIR} to a folder that holds {declaration.mirror}"
        ) from error
    return {f"row {number}": row for number, row in enumerate(concatenate_datasets(parts), 1)}, f"hub {address}"


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:160]

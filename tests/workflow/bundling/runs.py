"""A tiny run made, bundled, replayed, and its bundle altered in ways that check sums do not tell of."""

import contextlib
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from harness.recording import FOLDER
from harness.runner import config, layout
from harness.runner.config import Cell, Preset
from workflow import scripts
from workflow.bundling import archive, opening
from workflow.bundling.archive import Archive, Member
from workflow.bundling.bundle import bundle
from workflow.commands import report

BENCHMARK = "humaneval"
OVERRIDES = {
    "benchmarks": [BENCHMARK],
    "methods": ["cot", "puppeteer", "masrouter", "gmr"],
    "backbones": ["qwen-2.5-14B"],
    "limit": {"train": 4, "test": 4, "epochs": 1},
}
SET = [f"{key}={orjson.dumps(value).decode()}" for key, value in OVERRIDES.items()]
ROWS = {"cot": "qwen-2.5-14B", "puppeteer": "qwen-2.5-14B", "masrouter": "pool", "gmr": "pool"}
CELLS = {method: Cell(method, BENCHMARK, row, 0) for method, row in ROWS.items()}
FOLDERS = {method: layout.cell("smoke", cell) for method, cell in CELLS.items()}
TABLE = [layout.report("smoke", f"main_table.{kind}") for kind in ("tex", "csv", "md", "html")]


def preset() -> Preset:
    return config.preset("smoke", OVERRIDES)


def run(cells: dict[str, Cell] = CELLS) -> None:
    """The jobs of a run in the working folder, in the order in which the DAG has them."""
    scripts.data("smoke", BENCHMARK, SET)
    scripts.world("smoke", SET)
    for cell in cells.values():
        cells.cell("smoke", cell.method, cell.benchmark, cell.backbone, cell.seed, overrides=SET)
    if cells is CELLS:
        report.report("main_table", "smoke", SET)


def bundled(folder: Path, name: str, *, questions: bool = True) -> Path:
    with contextlib.chdir(folder):
        bundle(preset(), ["main_table"], folder / name, questions=questions)
    return folder / name


def replay(path: Path, *methods: str) -> Path:
    """Replay a bundle in the working folder, all of it unless methods are named; returns the folder it worked in."""
    opened = opening.opened({"preset": "replay", "bundle": str(path)})
    with contextlib.chdir(opened.folder):
        run({method: CELLS[method] for method in methods} if methods else CELLS)
    return opened.folder


def altered(path: Path, out: Path, change: Callable[[Path], None]) -> Path:
    """A bundle with changed files, whose manifest and check sums are those of the changed files."""
    facts = {key: value for key, value in Archive(path).manifest.items() if key not in ("files", "format")}
    with TemporaryDirectory() as unpacked:
        with tarfile.open(path) as tar:
            tar.extractall(unpacked, filter="data")
        folder = Path(unpacked)
        for name in ("manifest.json", "manifest.json.sha256"):
            (folder / name).unlink()
        change(folder)
        files = [file for file in folder.rglob("*") if file.is_file()]
        archive.write(out, facts, [Member(file.relative_to(folder).as_posix(), file) for file in files])
    return out


def files_of(method: str) -> list[Path]:
    """What a cell leaves behind that is part of its result."""
    names = ["run.json", "items.parquet", "calls.parquet", "decisions.parquet", "calls.sqlite"]
    if method != "cot":
        names += ["trained.safetensors", "training.parquet", "training_calls.parquet", "training_decisions.parquet"]
    return [FOLDERS[method] / name for name in names]


def unpacked(folder: Path) -> Path:
    """Where a replay keeps what was recorded."""
    return folder / FOLDER

"""An untrusted bundle is only data: its content opens no connection and changes no file, verdict or output."""

import io
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zipfile import ZipFile

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pydantic import TypeAdapter

from analysis import registry
from cli.replay import replay
from harness.benchmarks.items import Item, checksum
from harness.errors import UserError
from harness.llm.archive import bounded_memory
from harness.llm.backbones import Endpoint
from harness.llm.recordings import opened
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from harness.runner.results import ITEMS as ITEM_COLUMNS
from harness.sandbox import Outcome, Program, Sandbox
from tests.cli.bundles import Change, Members, made
from tests.command import gmr
from tests.finished import BENCHMARK

pytestmark = pytest.mark.usefixtures("folder")
SINGLE = Cell("single", BENCHMARK, "qwen-2.5-14B", 0)
RUN, SETTINGS = str(layout.cell("smoke", SINGLE) / "run.json"), "config/config.yaml"
ITEMS = RUN.replace("run.json", "items.parquet")
QUESTIONS = f"results/smoke/data/{BENCHMARK}"


def stating(**changes: Any) -> Change:
    return lambda files: files.update(
        {SETTINGS: yaml.safe_dump({**yaml.safe_load(files[SETTINGS]), **changes}).encode()}
    )


def saying(**changes: Any) -> Change:
    return lambda files: files.update({RUN: orjson.dumps({**orjson.loads(files[RUN]), **changes})})


answered = partial(replay, make_reports=False)


def test_settings_of_a_bundle_open_no_client_and_read_no_key(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached = Mock(side_effect=AssertionError("a client was opened, or a key read"))
    monkeypatch.setattr("harness.llm.served_backbone.ServedBackbone.__init__", reached)
    monkeypatch.setattr("harness.llm.servers.http_client", reached)
    monkeypatch.setattr(Endpoint, "api_key", property(reached))
    monkeypatch.setenv("SOME_VARIABLE", "secret")
    servers = {"qwen-2.5-14B": {"url": "http://stranger.example/v1", "key_env": "SOME_VARIABLE"}}
    for endpoints in ("served", "recorded", ["recorded", "served"]):
        change = stating(endpoints=endpoints, servers=servers, budget={"calls": 9})
        assert answered(made(whole, change)).differences == {SINGLE: ""}


def test_a_folder_that_a_bundle_was_unpacked_to_runs_nothing(whole: Path, folder: Path) -> None:
    with ZipFile(whole) as archive:
        archive.extractall(folder)
    with pytest.raises(UserError, match="is an unpacked bundle, where nothing is run"):
        resolve("smoke")


@pytest.mark.parametrize("name", ["../../../elsewhere/smoke", "/elsewhere", ".", 5, "a\nb"])
def test_a_name_is_a_name(name: object, whole: Path, folder: Path) -> None:
    path = made(whole, stating(preset=name))
    with pytest.raises(UserError, match="is no name"):
        opened(path)
    assert {*folder.iterdir()} == {path, folder / "results"}
    if isinstance(name, str):
        with pytest.raises(UserError, match="preset"):
            gmr("report", "page", "--preset", name)


def test_caches_are_those_of_the_replay(whole: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GMR_CACHE_DIR", str(folder / "mine"))
    more = {"results/cache/machine.sqlite": b"", "harness/evil.py": b"", "results/smoke/cells/../x.json": b""}
    path = made(whole, lambda files: files.update(more))
    assert answered(path).differences == {SINGLE: ""}
    assert not (folder / "mine").exists()
    assert [name for name in more if (opened(path).root / name).exists()] == []


async def test_checks_of_a_stranger_run_in_a_grader_that_nobody_uses_after_them() -> None:
    patch = "import sys\nfor module in list(sys.modules.values()):\n    module.__dict__['left'] = 1"
    found = "import sys\nassert 'left' not in vars(sys)"
    for reuses, outcome in ((True, Outcome.WRONG_ANSWER), (False, Outcome.PASSED)):
        async with Sandbox(workers=1, reuses=reuses) as sandbox:
            await sandbox.run(Program("def f(): pass", "", patch, "f"))
            assert (await sandbox.run(Program("def f(): pass", "", found, "f"))).outcome is outcome


def with_other_questions(files: Members) -> None:
    others = files[f"{QUESTIONS}.items.jsonl"].replace(b"assert ", b"assert True or ")
    items = [TypeAdapter(Item).validate_json(line) for line in others.splitlines()]
    manifest = {**orjson.loads(files[f"{QUESTIONS}.json"]), "pool_checksum": checksum(items)}
    files |= {f"{QUESTIONS}.items.jsonl": others, f"{QUESTIONS}.json": orjson.dumps(manifest)}


def test_questions_are_compared_with_the_benchmarks_own_or_said_to_be_the_bundles_word(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(whole, with_other_questions)
    found = answered(path)
    why = f"the questions of {BENCHMARK} in strange.zip are not the benchmark's own: pool_checksum differs"
    assert found.differences == {SINGLE: why}
    monkeypatch.setattr("harness.runner.questions.is_at_hand", lambda *_: False)
    assert "were not verified" in answered(path).remarks[f"questions of {BENCHMARK}"]


@pytest.mark.parametrize(
    "change",
    [{"simulated": False}, {"backbones": {}}, {"benchmark_title": "HumanEval (all 164)"}],
)
def test_what_a_run_says_of_itself_is_recomputed_whatever_its_code(change: dict[str, Any], whole: Path) -> None:
    found = answered(made(whole, saying(**change, code="0" * 64)))
    assert f"run.json has {next(iter(change))} " in found.differences[SINGLE]
    assert found.remarks["code"] == "1 of 1 cells were recorded by other code"


def parquet(table: pa.Table) -> bytes:
    pq.write_table(table, file := io.BytesIO())
    return file.getvalue()


def test_a_column_a_row_or_a_table_that_is_missing_or_added_is_a_difference(whole: Path) -> None:
    def rewriting(change: Callable[[pa.Table], pa.Table]) -> Change:
        return lambda files: files.update({ITEMS: parquet(change(pq.read_table(io.BytesIO(files[ITEMS]))))})

    number = ITEM_COLUMNS.get_field_index("calls")
    for change, said in (
        (rewriting(lambda table: table.drop_columns("split")), "items.parquet has the columns "),
        (rewriting(lambda table: table.set_column(number, "calls", table["calls"].cast("int32"))), "calls int32"),
        (rewriting(lambda table: table[:2]), "items.parquet differs in 1 rows, the first of "),
        (rewriting(lambda table: pa.concat_tables([table, table[:1]])), "is 'no row'"),
        (lambda files: files.pop(ITEMS), "items.parquet was not recorded"),
        (lambda files: files.update({ITEMS.replace("items", "more"): files[ITEMS]}), "more.parquet was not recomputed"),
    ):
        assert said in answered(made(whole, change)).differences[SINGLE]


@pytest.fixture
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the reports of a replay, which take longer than all else."""
    monkeypatch.setattr(registry, "of_run", lambda run: [])


@pytest.mark.usefixtures("no_tables")
def test_control_characters_of_a_file_are_escaped_and_cells_are_counted(whole: Path) -> None:
    path = made(whole, lambda files: None, description="42 finished cells\x1b[2K\rWhole: yes\nAgain: 42 of 42")
    shown = gmr("replay", str(path)).output
    assert re.search("preset smoke, [0-3] cells", shown)
    assert "42 finished cells\\x1b[2K\\rWhole: yes\\nAgain: 42 of 42" in shown
    assert str(UserError("no pool.a\x1b[2K\nWhole: yes", "mend\rit")) == "no pool.a\\x1b[2K\\nWhole: yes; mend\\rit"


def test_what_a_bundle_takes_is_counted(whole: Path) -> None:
    many = pa.table({"text": pa.nulls(10_000_000, pa.int64())})
    packed = pa.table({"text": pa.array(["long"]).dictionary_encode()})
    for name, content, message in (
        (f"{QUESTIONS}.zeros", bytes(70 << 20), "unpacks to more than any bundle does"),
        (ITEMS, parquet(many), "items.parquet has too many values"),
        (ITEMS, parquet(packed), "items.parquet has .* of another type"),
    ):
        path = made(whole, lambda files, name=name, content=content: files.update({name: content}))
        with pytest.raises(UserError, match=message):
            opened(path)


def test_a_false_size_is_not_believed_and_an_encrypted_member_is_one_line(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(whole, lambda files: files.update({f"{QUESTIONS}.zeros": bytes(63 << 20)}))
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 63 << 20), struct.pack("<I", 9)))
    # The bit of encryption of every member.
    headers = re.compile(rb"(PK\x03\x04..|PK\x01\x02....).", re.DOTALL)
    Path("e.zip").write_bytes(headers.sub(lambda header: header[1] + b"\x01", whole.read_bytes()))
    monkeypatch.setattr("harness.llm.archive._MEMORY", 48 << 20)
    for changed in (path, Path("e.zip").absolute()):
        with pytest.raises(UserError, match="is damaged"):
            opened(changed)
    with pytest.raises(UserError, match="takes more than"), bounded_memory(path):
        bytearray(1 << 30)


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.update({SETTINGS: b"\xff"}),
        lambda files: files.update({RUN: b"{}"}),
        stating(pool=5),
        lambda files: files.update({ITEMS: b"PAR1"}),
        lambda files: files.update({RUN.replace("run.json", "servers.json"): b'{"served": {"m": {"details": []}}}'}),
        lambda files: files.update({RUN.replace("run.json", "calls.sqlite"): b"no database"}),
        lambda files: files.update({f"{QUESTIONS}.json": b"{}"}),
    ],
)
@pytest.mark.usefixtures("no_tables")
def test_a_malformed_bundle_is_one_line(change: Change, whole: Path) -> None:
    said = ("was not reproduced", "not checked", "not replayed")
    with suppress(UserError):
        shown = gmr("replay", str(made(whole, change)))
        assert shown.exit_code == 1 or any(words in shown.output for words in said)


def test_methods_of_a_bundle_run_only_if_their_file_is_named(whole: Path) -> None:
    own = {
        "mine/methods.yaml": b"mine_too: {extends: single, title: Mine, module: mine_too}",
        "mine/mine_too.py": b"from pathlib import Path\nPath('/tmp/imported').touch()\nfrom baselines.single import *",
    }

    def change(files: Members) -> None:
        stating(extra="mine/methods.yaml", methods=["single", "mine_too"])(files)
        cells = [name for name in files if "cells/single" in name]
        files |= own | {name.replace("cells/single", "cells/mine_too"): files[name] for name in cells}

    path = made(whole, change)
    mine = Cell("mine_too", BENCHMARK, "qwen-2.5-14B", 0)
    found = answered(path)
    assert (found.differences, "--code FILE" in found.remarks[str(mine)]) == ({SINGLE: ""}, True)
    assert not (opened(path).root / "mine").exists()
    assert {*replay(path, make_reports=False, code="mine/methods.yaml").differences} == {SINGLE, mine}
    with pytest.raises(UserError, match="has no methods in a file other"):
        replay(path, make_reports=False, code="other.yaml")

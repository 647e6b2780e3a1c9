"""Preparing questions from every source: the two files, splits, and invalid data."""

import codecs
import gzip
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import catalogue
from harness.benchmarks.base import Benchmark
from harness.benchmarks.catalogue import Expected, benchmark, keys
from harness.benchmarks.items import Item, checksum, keyed_order, largest_remainder, share_split, stratified_sample
from harness.benchmarks.prepare import Prepared, load_items, prepare, read
from harness.benchmarks.reading import statements
from harness.benchmarks.validate import check_gold
from harness.errors import UserError
from tests.harness.benchmarks.conftest import ALL


def write_mirror(folder: Path, key: str, records: list[dict[str, Any]]) -> Path:
    path = folder / catalogue.entry(key).mirror
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        from datasets import Dataset

        Dataset.from_list(records).to_parquet(path)
        return path
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of upstream's files, of which the configuration expects that they hold the samples."""
    entries = {}
    for key, real in catalogue._entries().items():
        items = benchmark(key).normalise(ALL[key])
        splits = {"official": benchmark(key).split(items, "official").checksum}
        expected = Expected(count=len(items), checksum=checksum(items), splits=splits, sizes={})
        entries[key] = real.model_copy(update={"expected": expected})
    monkeypatch.setattr(catalogue, "_entries", lambda: entries)
    monkeypatch.setenv("GMR_DATA_DIR", str(tmp_path / "mirror"))
    return tmp_path / "mirror"


def prepared(key: str, tmp_path: Path, **changes: Any) -> Prepared:
    settings = {"data": "real", "splits": "official", **changes}
    prepare(key, out_items=tmp_path / "items.jsonl", out_manifest=tmp_path / "manifest.json", **settings)
    return read(tmp_path / "manifest.json", tmp_path / "items.jsonl")


@pytest.mark.parametrize("key", keys())
def test_mirror_to_files_and_back_and_a_file_that_is_missing_or_cut_off(key: str, mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{catalogue.entry(key).mirror} does not exist.*GMR_DATA_DIR"):
        load_items(key, "real")
    path = write_mirror(mirror, key, ALL[key])
    result = prepared(key, tmp_path)
    items = benchmark(key).normalise(ALL[key])
    assert result.pool == items
    assert sorted(item.id for item in [*result.train, *result.test]) == sorted(item.id for item in items)
    assert (result.title, result.count, result.checksum) == (benchmark(key).title, len(items), checksum(items))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=f"{path.name}, .*fetch it again"):
        load_items(key, "real")


@pytest.mark.parametrize(
    ("key", "records", "message"),
    [
        ("math", ALL["math"][:-1], "gives 2 MATH questions with .*expected 3 with .*use upstream's unchanged"),
        ("math", [{**ALL["math"][0], "solution": r"$\boxed{3}$"}, *ALL["math"][1:]], "gives 3 .* altered"),
        ("mmlu_pro", [ALL["mmlu_pro"][0]] * 2, "row 2: the id '70' is that of row 1, too"),
    ],
)
def test_records_that_are_not_upstream_s(key: str, records: list[dict[str, Any]], message: str, mirror: Path) -> None:
    write_mirror(mirror, key, records)
    with pytest.raises(UserError, match=message):
        load_items(key, "real")


class Colours(Benchmark):
    """A benchmark of a user."""

    rule_version, role_domain, output_rules = "1", "Math", "The answer is <colour>."

    def normalise(self, records: Sequence[Mapping[str, Any]]) -> list[Item]:
        return [
            Item(str(one["id"]), self.key, one["question"], one["answer"], options=tuple(one.get("options", ())))
            for one in records
        ]

    def find_answer(self, item: Item, text: str, cut_off: bool) -> str | None:
        return next((statement.text.strip() for statement in statements(text, cut_off)), None)


BENCHMARK = Colours
ONE, TWO = ({"id": key, "question": "Red or blue?", "answer": "red"} for key in ("a", "b"))
TABLE = b'id,question,answer\n"a","Red or blue?",red\n'


@pytest.mark.parametrize(
    ("name", "content", "outcome"),
    [
        ("q.csv", TABLE, [ONE]),
        ("q.tsv", codecs.BOM_UTF8 + TABLE.replace(b",", b"\t").replace(b"\n", b"\r\n"), [ONE]),
        ("q.jsonl", f"\n{json.dumps(ONE)}\n\n{json.dumps(TWO)}\n".encode(), [ONE, TWO]),
        ("q.jsonl", [{**ONE, "id": 10**25}], [{**ONE, "id": 10**25}]),
        ("q.csv", TABLE + b"b,red\n", "q.csv, line 3: it has not the 3 cells of the header"),
        ("q.csv", TABLE.replace(b"question", b"id"), "line 1: two columns have the same name"),
        ("q.csv", TABLE + b",q,red\n", "file q.csv, line 3: the id '' or the gold answer 'red' is empty"),
        ("q.jsonl", json.dumps(ONE).encode() + b",", "line 1: Extra data .*, no JSON object"),
        ("q.jsonl", [[ONE]], "line 1: a list, where each line is one JSON object"),
        ("q.jsonl", [{**ONE, "answer": ["red"]}], "gold: .* a valid string.* let `same` accept the others"),
        ("q.jsonl", b"{}\n\xff", "can't decode byte 0xff in position 3: .*; correct it and save it as UTF-8"),
        ("q.jsonl", [ONE, {"id": 1}], "file q.jsonl, line 2: a record lacks the field 'question'"),
        ("q.jsonl", [ONE, TWO, ONE], "line 3: the id 'a' is that of line 1, too"),
        ("q.jsonl", [ONE, {**TWO, "id": None}], "line 2: the id 'None' or"),
        ("q.jsonl", [{**ONE, "options": ["red"]}], "`question` does not show the option 'red'"),
        ("q.jsonl", [ONE, {**TWO, "answer": "blue "}], "line 2: the gold answer 'blue ' .*'blue' was found"),
    ],
)
async def test_own_questions_are_read_and_what_is_wrong_is_named_by_its_line(
    name: str, content: Any, outcome: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = content if isinstance(content, bytes) else "\n".join(map(json.dumps, content)).encode()
    mine = declared(tmp_path / name, lines, __name__, monkeypatch)
    if isinstance(outcome, str):
        with pytest.raises(UserError, match=outcome):
            await check_gold(mine, "embedded")
        return
    await check_gold(mine, "embedded")
    assert load_items(mine, "embedded").items == Colours(mine, "Mine").normalise(outcome)


def declared(questions: Path, content: bytes, module: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Declare the benchmark of a user, and return its key."""
    questions.write_bytes(content)
    monkeypatch.setattr(catalogue, "_further", {})
    key = questions.parent.name  # Loaded benchmarks are cached.
    catalogue.declare({key: {"module": module, "title": "Mine", "questions": questions.name}}, questions)
    return key


async def test_a_gold_program_that_fails_its_checks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"task_id": 11, "text": "Do it twice.", "code": "def twice(f, x): return x", "test_setup_code": ""}
    tests = ["assert twice(0, 1) == 1", "assert twice(lambda x: x, 1) == 1"]
    content = json.dumps({**record, "test_list": tests}).encode()
    mine = declared(tmp_path / "q.jsonl", content, "harness.benchmarks.mbpp", monkeypatch)
    with pytest.raises(UserError, match=r"not_plain: the checks pass a function by the check 'assert twice\(lambda"):
        await check_gold(mine, "embedded")


def test_a_split_that_came_out_otherwise_or_does_not_fit(mirror: Path, tmp_path: Path) -> None:
    write_mirror(mirror, "math", ALL["math"])
    for data, splits, message in (
        ("real", "published", r"MATH: the published split has checksum .* expects None"),
        ("embedded", "published", "use 'official'"),
    ):
        with pytest.raises(UserError, match=message):
            prepared("math", tmp_path, data=data, splits=splits)
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.usefixtures("mirror")
def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.delenv("GMR_DATA_DIR", raising=False)
    hub, requests = catalogue.entry("math").hub, []

    def load_dataset(repo: str, config: str, *, revision: str | None, split: str) -> datasets.Dataset:
        if len(requests) == len(hub.configs):
            raise OSError("no\nnetwork")
        requests.append((repo, config, revision, split))
        return datasets.Dataset.from_list([ALL["math"][len(requests) - 1]] if len(requests) <= 3 else ALL["math"][:0])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    loaded = load_items("math", "real")
    assert requests == [(hub.repo, config, hub.revision, "test") for config in hub.configs]
    assert loaded.source == f"hub {hub.repo}@{hub.revision}"
    with pytest.raises(UserError, match=r"\AMATH cannot be loaded from the hub, .*set GMR_DATA_DIR to .*math.*\Z"):
        load_items("math", "real")


def test_files_that_are_damaged_or_do_not_belong_together(tmp_path: Path) -> None:
    prepared("gsm_hard", tmp_path, data="embedded")
    files = [tmp_path / name for name in ("manifest.json", "items.jsonl")]
    manifest, items = (file.read_bytes() for file in files)
    for contents, message in (
        ((manifest, items[: items.rindex(b"{")]), r"items\.jsonl does not hold the questions.*again"),
        ((manifest, items.replace(b'"gold":"', b'"gold":"1', 1)), "another checksum"),
        ((manifest.replace(b'"test": [', b'"test": ["stranger",'), items), "does not hold"),
    ):
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        with pytest.raises(UserError, match=message):
            read(*files)
    files[0].unlink()
    with pytest.raises(UserError, match="make it with `snakemake --cores all"):
        read(*files)


def test_a_split_without_a_test_question_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = declared(tmp_path / "q.csv", b"id,question,answer\n", __name__, monkeypatch)
    with pytest.raises(UserError, match="no test question of Mine"):
        prepared(mine, tmp_path)


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=60), st.randoms(use_true_random=False))
def test_a_fifth_rounded_down_trains_whatever_the_order_of_reading(ids: list[str], rng: random.Random) -> None:
    split = share_split(ids, "toy")
    assert len(split.train) == int(0.2 * len(ids))
    assert sorted([*split.train, *split.test]) == sorted(ids)
    assert share_split(rng.sample(ids, len(ids)), "toy") == split


def test_the_order_never_changes() -> None:
    assert keyed_order(list("abcdef"), "p") == ["e", "c", "d", "f", "a", "b"]
    ids = [f"{number:04d}" for number in range(1000)]
    order = keyed_order(ids, "p")
    assert order != keyed_order(ids, "q")
    assert [id_ for id_ in keyed_order([*ids, "new"], "p") if id_ != "new"] == order


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 5000), min_size=1, max_size=14), st.data())
def test_largest_remainder_stays_within_one_of_the_share(counts: dict[str, int], data: st.DataObject) -> None:
    total = data.draw(st.integers(0, sum(counts.values())))
    seats = largest_remainder(counts, total)
    assert sum(seats.values()) == total
    for name, count in counts.items():
        assert abs(seats[name] - total * count / sum(counts.values())) < 1
        assert 0 <= seats[name] <= count


def test_a_sample_has_so_many_of_each_stratum() -> None:
    strata = {f"q{number}": "abcdefg"[number % 7] for number in range(200)}
    sample = stratified_sample(strata, {"a": 1, "c": 0, "b": 3}, "toy")
    assert [strata[id_] for id_ in dict.fromkeys(sample)] == ["a", "b", "b", "b"]

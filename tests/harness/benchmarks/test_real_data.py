"""The real benchmark files: sizes, checksums, and a sample of the validation that covers them all."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.loading import load_items, split_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.splits import keyed_order
from harness.benchmarks.validate import check
from harness.sandbox import Sandbox

pytestmark = [pytest.mark.realdata, pytest.mark.usefixtures("mirror")]

# Training and test questions by kind of split, and how many of all are validated here.
SIZES = {
    "math": ((103, 416), (1000, 4000), 60),
    "gsm_hard": ((263, 1056), (263, 1056), 1319),
    "mbpp": ((374, 500), (374, 500), 20),
    "humaneval": ((32, 129), (32, 132), 20),
    "mmlu_pro": ((220, 880), (2406, 9626), 2000),
}


@pytest.mark.parametrize("key", keys())
async def test_sizes_checksums_and_a_sample_validates(key: str) -> None:
    items = load_items(key, "real").items
    for kind, sizes in zip(("published", "official"), SIZES[key][:2], strict=True):
        split = split_items(key, "real", items, kind)
        assert (len(split.train), len(split.test)) == sizes
        assert not {*split.train} & {*split.test}
    by_id = {item.id: item for item in items}
    sample = [by_id[id_] for id_ in keyed_order(by_id, "validation sample")[: SIZES[key][2]]]
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        report = await check(benchmark(key), sample, "real", Tools(sandbox, math_verify))
    assert report.passed, report.to_markdown()


@pytest.mark.parametrize(("key", "strata"), [("math", 35), ("mmlu_pro", 14)])
def test_samples_follow_their_strata(key: str, strata: int) -> None:
    """A tenth of every stratum of MATH, rounded up; 1100 questions of MMLU-Pro in proportion to the categories."""
    items = load_items(key, "real").items
    split = benchmark(key).split(items, "published")
    sample = Counter(item.stratum for item in items if item.id in {*split.train, *split.test})
    assert len(sample) == strata
    for name, count in Counter(item.stratum for item in items).items():
        assert sample[name] == -(-count // 10) if key == "math" else abs(sample[name] - 1100 * count / 12032) < 1


def test_the_package_and_the_mirror_hold_the_same_humaneval(monkeypatch: pytest.MonkeyPatch) -> None:
    from_mirror = load_items("humaneval", "real")
    monkeypatch.delenv("GMR_DATA_DIR")
    from_package = load_items("humaneval", "real")
    assert from_package.items == from_mirror.items
    assert from_package.source != from_mirror.source


def test_no_credit_is_drawn_where_no_letter_is_named(mirror: Path) -> None:
    by_id = {item.id: item for item in load_items("mmlu_pro", "real").items}
    with gzip.open(mirror / "outputs" / "mmlu_pro.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    drawn = [record for record in records if record["meta"]["upstream_rule"] == "random_guess"]
    assert drawn
    subject = benchmark("mmlu_pro")
    assert all(subject.extract(by_id[str(record["item_id"])], record["response"]) is None for record in drawn)

"""The real benchmark files: sizes, checksums, and a sample of the validation that covers them all."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.loading import Loaded, load_items, split_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.splits import keyed_order
from harness.benchmarks.validate import check
from harness.sandbox import Sandbox

pytestmark = pytest.mark.realdata

PUBLISHED = {
    "math": (103, 416),
    "gsm_hard": (263, 1056),
    "mbpp": (374, 500),
    "humaneval": (32, 129),
    "mmlu_pro": (220, 880),
}
OFFICIAL = {
    "math": (1000, 4000),
    "gsm_hard": (263, 1056),
    "mbpp": (374, 500),
    "humaneval": (32, 132),
    "mmlu_pro": (2406, 9626),
}


@pytest.fixture(scope="module")
def loaded() -> dict[str, Loaded]:
    return {}


@pytest.fixture
def load(loaded: dict[str, Loaded], mirror: Path) -> Any:
    def one(key: str) -> Loaded:
        if key not in loaded:
            loaded[key] = load_items(key, "real")
        return loaded[key]

    return one


@pytest.mark.parametrize("key", keys())
def test_sizes_and_checksums(key: str, load: Any) -> None:
    items = load(key).items
    for kind, sizes in (("published", PUBLISHED), ("official", OFFICIAL)):
        split = split_items(key, "real", items, kind)
        assert (len(split.train), len(split.test)) == sizes[key]
        assert not {*split.train} & {*split.test}


def test_samples_follow_their_strata(load: Any) -> None:
    """A tenth of every stratum of MATH, rounded up; 1100 questions of MMLU-Pro in proportion to the categories."""
    for key, strata in (("math", 35), ("mmlu_pro", 14)):
        items = load(key).items
        split = benchmark(key).split(items, "published")
        sample = Counter(item.stratum for item in items if item.id in {*split.train, *split.test})
        assert len(sample) == strata
        for name, count in Counter(item.stratum for item in items).items():
            assert sample[name] == -(-count // 10) if key == "math" else abs(sample[name] - 1100 * count / 12032) < 1


def test_the_package_and_the_mirror_hold_the_same_humaneval(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from_mirror = load("humaneval")
    monkeypatch.delenv("GMR_DATA_DIR")
    from_package = load_items("humaneval", "real")
    assert from_package.items == from_mirror.items
    assert from_package.source != from_mirror.source


@pytest.mark.parametrize(
    ("key", "n"), [("math", 60), ("gsm_hard", 1319), ("mbpp", 20), ("humaneval", 20), ("mmlu_pro", 2000)]
)
async def test_a_sample_validates(key: str, n: int, load: Any) -> None:
    by_id = {item.id: item for item in load(key).items}
    sample = [by_id[id_] for id_ in keyed_order(by_id, "validation sample")[:n]]
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        report = await check(benchmark(key), sample, "real", Tools(sandbox, math_verify))
    assert report.items == len(sample)
    assert report.passed, report.to_markdown()


def outputs(mirror: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(mirror / "outputs" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_no_credit_is_drawn_where_no_letter_is_named(load: Any, mirror: Path) -> None:
    by_id = {item.id: item for item in load("mmlu_pro").items}
    records = [record for record in outputs(mirror, "mmlu_pro") if record["meta"]["upstream_rule"] == "random_guess"]
    assert records
    subject = benchmark("mmlu_pro")
    assert all(subject.extract(by_id[str(record["item_id"])], record["response"]) is None for record in records)

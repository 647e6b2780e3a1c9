"""The real benchmark files: sizes, checksums, and a sample of the validation that covers them all."""

import pytest

from harness.benchmarks import Tools, benchmark, keys
from harness.benchmarks.items import keyed_order
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items, split_items
from harness.benchmarks.validate import validate_items
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
        report = await validate_items(benchmark(key), sample, "real", Tools(sandbox, math_verify))
    assert report.passed, report.to_markdown()

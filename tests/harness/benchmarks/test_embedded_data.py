"""The mini-benchmarks: checksums, upstream's format, correct answers; and the real benchmark files."""

import pytest

from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark, entry, keys
from harness.benchmarks.items import keyed_order
from harness.benchmarks.prepare import EMBEDDED, load_items, split_items
from harness.benchmarks.validate import find_exceptions
from harness.files import sha256

# SHA-256 of the file, and the checksum of its items that every manifest carries, begun. A change here changes every
# number measured on the embedded sets: it is a new version of the benchmark.
PINS = {
    "gsm_hard": ("a5efa517a88a72fb912bdd86973a327e", "399f99d4f1a5bda413515a71cac3bda5"),
    "humaneval": ("a0f141a0bd4f0d5c6dc7b9f111973816", "afdb84cee10b45a267a1fb79c1fe4274"),
    "math": ("c1c4fcaae1b76432bace11a560afdd71", "2025cca18907e999c5379ab3218aff04"),
    "mbpp": ("8655a39c0b9ac3d583793042c3774bf4", "89b0b7f20ba48094415927b628adcee5"),
    "mmlu_pro": ("042938631a04f2eb50ca5df58229c124", "85b50ec38a8849f10fd8bdad8997b6e5"),
}


@pytest.mark.parametrize("key", keys())
def test_the_questions_are_the_pinned_ones_in_one_form(key: str) -> None:
    loaded, path = load_items(key, "embedded"), EMBEDDED / f"{key}.jsonl"
    assert (sha256(path)[:32], loaded.checksum[:32]) == PINS[key]
    assert all(item.difficulty is not None and 0 <= item.difficulty <= 1 for item in loaded.items)
    split = split_items(key, "embedded", loaded.items, "official")
    assert (len(split.train), len(split.test)) == (32, 128)


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("key", keys())
async def test_every_gold_answer_is_right_and_a_mutant_wrong(key: str, step: int, tools: Tools) -> None:
    exceptions = await find_exceptions(benchmark(key), load_items(key, "embedded").items[::step], tools)
    assert not any(exceptions.values()), exceptions


# Questions that are validated here.
SAMPLE_SIZES = {"math": 30, "gsm_hard": 1319, "mbpp": 20, "humaneval": 20, "mmlu_pro": 2000}


@pytest.mark.realdata
@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("key", keys())
async def test_sizes_checksums_and_a_sample_validates(key: str, tools: Tools) -> None:
    items = load_items(key, "real").items
    for kind, sizes in entry(key).expected.sizes.items():
        split = split_items(key, "real", items, kind)
        assert (len(split.train), len(split.test)) == sizes
        assert not {*split.train} & {*split.test}
    by_id = {item.id: item for item in items}
    sample = [by_id[id_] for id_ in keyed_order(by_id, "validation sample")[: SAMPLE_SIZES[key]]]
    exceptions = await find_exceptions(benchmark(key), sample, tools)
    assert not any(exceptions.values()), exceptions

"""The five files of the mini-benchmarks: pinned, in upstream's form, sound, and no two questions alike."""

from __future__ import annotations

import hashlib
from itertools import combinations
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.benchmarks import Tools, benchmark, keys, sources
from harness.benchmarks.loading import load_items
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.validate import check
from harness.errors import UserError
from harness.sandbox import Sandbox

# SHA-256 of the file, and the checksum of its items that every manifest carries. A change here changes every number
# measured on the embedded sets: it is a new version of the benchmark.
PINS = {
    "gsm_hard": (
        "a5efa517a88a72fb912bdd86973a327e67e9cf947b3112d6c79100980117e3ea",
        "399f99d4f1a5bda413515a71cac3bda5e667a8ee5456745763669d2ac9d1fb36",
    ),
    "humaneval": (
        "a0f141a0bd4f0d5c6dc7b9f111973816ce466c98a18cf9151779e316e74917e8",
        "afdb84cee10b45a267a1fb79c1fe427458dd47bb27d45d48a12520a351ac2c8c",
    ),
    "math": (
        "c1c4fcaae1b76432bace11a560afdd71f6d5c9a3eb54b431c982a5e72359930b",
        "2025cca18907e999c5379ab3218aff042385d3c2a3630da8a8af89316f9d4740",
    ),
    "mbpp": (
        "8655a39c0b9ac3d583793042c3774bf4e07d16c2b635de281e3dc1b0e75b1840",
        "89b0b7f20ba48094415927b628adcee5e3d848ff1738c272de4a83550eb397ad",
    ),
    "mmlu_pro": (
        "042938631a04f2eb50ca5df58229c12423c9b85624d1b9b450d3a00550e4c059",
        "85b50ec38a8849f10fd8bdad8997b6e55657dce004d2c2b8f01a07c555f754b8",
    ),
}
# The field that asks: what a model reads has the same words around it in every question of a benchmark.
ASKED = {"gsm_hard": "input", "humaneval": "prompt", "math": "problem", "mbpp": "text", "mmlu_pro": "question"}
NEAR_DUPLICATE = 0.8


def content(key: str) -> bytes:
    return (sources.EMBEDDED / f"{key}.jsonl").read_bytes()


def records(key: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in content(key).splitlines()]


def shingles(text: str) -> frozenset[str]:
    """The distinct runs of five characters in a text, case ignored."""
    folded = text.casefold()
    return frozenset(folded[start : start + 5] for start in range(max(1, len(folded) - 4)))


@pytest.mark.parametrize("key", keys())
def test_the_questions_are_the_pinned_ones(key: str) -> None:
    assert (hashlib.sha256(content(key)).hexdigest(), load_items(key, "embedded").checksum) == PINS[key]


@pytest.mark.parametrize("key", keys())
def test_one_record_a_line_in_one_way_of_writing(key: str) -> None:
    found = records(key)
    assert len(found) == 160
    assert len({tuple(record) for record in found}) == 1
    assert b"".join(orjson.dumps(record, option=orjson.OPT_SORT_KEYS) + b"\n" for record in found) == content(key)


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("key", keys())
async def test_every_gold_answer_is_right_and_a_mutant_wrong(key: str, step: int) -> None:
    some = load_items(key, "embedded").items[::step]
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        report = await check(benchmark(key), some, "embedded", Tools(sandbox, math_verify))
    assert report.items == 160 // step
    assert report.passed, report.to_markdown()
    assert report.examples_wrong == ()


def test_the_programs_of_the_word_problems_give_their_targets() -> None:
    for record in records("gsm_hard"):
        namespace: dict[str, Any] = {}
        exec(record["code"], namespace)  # noqa: S102 - the project's own programs
        assert namespace["solution"]() == pytest.approx(record["target"], rel=1e-9), record["input"]


def test_one_option_of_a_choice_is_right() -> None:
    for record in records("mmlu_pro"):
        assert len({option.casefold() for option in record["options"]}) == len(record["options"]) >= 8
        assert "ABCDEFGHIJ"[record["answer_index"]] == record["answer"]


@pytest.mark.parametrize("key", keys())
def test_no_two_questions_are_near_duplicates(key: str) -> None:
    grams = [shingles(record[ASKED[key]]) for record in records(key)]
    assert max(len(one & other) / len(one | other) for one, other in combinations(grams, 2)) < NEAR_DUPLICATE


def test_a_benchmark_without_a_file_and_a_damaged_file_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "EMBEDDED", tmp_path)
    with pytest.raises(UserError, match=r"MATH has no embedded questions: .*math\.jsonl does not exist"):
        load_items("math", "embedded")
    (tmp_path / "math.jsonl").write_bytes(b'{"problem": "1 +')
    with pytest.raises(UserError, match=r"math\.jsonl holds a line that is not JSON"):
        load_items("math", "embedded")

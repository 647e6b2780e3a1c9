import math
from collections import Counter

import pytest

from harness.benchmarks import leaks
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import Prepared

BASE = (
    "A shop sells {} pencils in boxes of {}; how many boxes must be opened for {} customers who each want one pencil?"
)
TRAIN = {
    "t0": BASE.format(120, 12, 37),
    "t1": "Name the capital city that lies on the river Seine, and the year its tower was finished.",
    "t2": "Let p be an odd prime. Show which residues are squares modulo p when p equals thirteen.",
}
TEST = {
    "e0": BASE.format(120, 12, 37).upper().replace(" ", "  "),
    "e1": BASE.format(120, 12, 38),
    "e2": "How far does light travel in a year, in kilometres, to two significant figures?",
    "e3": TRAIN["t2"],
}


def items(texts: dict[str, str]) -> list[Item]:
    return [Item(id=id_, benchmark="toy", question=text, gold="1") for id_, text in texts.items()]


def prepared(train: dict[str, str], test: dict[str, str]) -> Prepared:
    sums = dict.fromkeys(("checksum", "split_checksum", "pool_checksum"), "")
    names = {"benchmark": "toy", "title": "mini-Toy", "data": "embedded", "source": "here", "splits": "official"}
    return Prepared(**names, **sums, count=0, pool=[], train=items(train), test=items(test))


def cosine(a: str, b: str, corpus: list[str]) -> float:
    """Tf-idf cosine over runs of five characters, straight from its definition."""

    def runs(text: str) -> Counter[str]:
        plain = " ".join(text.lower().split())
        return Counter(plain[start : start + 5] for start in range(len(plain) - 4))

    containing = Counter(run for text in corpus for run in set(runs(text)))
    weight = {run: math.log((1 + len(corpus)) / (1 + n)) + 1 for run, n in containing.items()}
    x, y = ({run: n * weight[run] for run, n in runs(text).items()} for text in (a, b))
    dot = sum(value * y.get(run, 0) for run, value in x.items())
    return dot / math.sqrt(sum(v * v for v in x.values()) * sum(v * v for v in y.values()))


@pytest.mark.parametrize("chunk", [1, 3, 256])
def test_exact_and_near_pairs_are_found_whatever_the_chunk(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "CHUNK", chunk)
    pairs = leaks.leaks(prepared(TRAIN, TEST))
    kinds = [("t0", "e0", "exact"), ("t0", "e1", "near"), ("t2", "e3", "exact")]
    assert [(leak.train, leak.test, leak.kind) for leak in pairs] == kinds
    expected = cosine(TRAIN["t0"], TEST["e1"], [*TRAIN.values(), *TEST.values()])
    assert leaks.NEAR <= expected < 1
    assert pairs[1].similarity == pytest.approx(expected, abs=1e-4)

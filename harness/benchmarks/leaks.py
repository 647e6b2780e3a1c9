"""Training questions that come back in the test: word for word, or nearly so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.benchmarks.items import Item
from harness.benchmarks.prepare import Prepared

NEAR = 0.9
NGRAM_LENGTH = 5
CHUNK = 256


class Leak(NamedTuple):
    """The ids of a training and a test question that are alike."""

    train: str
    test: str
    kind: str  # ``"exact"``, but for case and white space, or ``"near"``, of at least the similarity ``NEAR``
    similarity: float  # cosine of the weighted counts of runs of five characters, between 0 and 1


def leaks(prepared: Prepared) -> list[Leak]:
    """All leaks from training into test questions of a prepared benchmark, by test id, then training id."""
    train, test = prepared.train, prepared.test
    return sorted(_leaks(train, test), key=lambda leak: (leak.test, leak.train)) if train and test else []


def _leaks(train: Sequence[Item], test: Sequence[Item]) -> Iterator[Leak]:
    """Both kinds; the similarities are formed for a few test questions at a time, which keeps memory flat."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    train_texts, test_texts = ([" ".join(one.question.lower().split()) for one in items] for items in (train, test))
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(NGRAM_LENGTH, NGRAM_LENGTH), lowercase=False)
    vectorizer.fit([*train_texts, *test_texts])
    columns = vectorizer.transform(train_texts).T
    exact = defaultdict(list)
    for place, text in enumerate(train_texts):
        exact[text].append(place)
    for start in range(0, len(test), CHUNK):
        texts = test_texts[start : start + CHUNK]
        found = (vectorizer.transform(texts) @ columns).tocoo()
        near = found.data >= NEAR
        for row, column, similarity in zip(found.row[near], found.col[near], found.data[near].tolist(), strict=True):
            if train_texts[column] != texts[row]:
                yield Leak(train[column].id, test[start + row].id, "near", round(similarity, 4))
        for row, text in enumerate(texts):
            yield from (Leak(train[place].id, test[start + row].id, "exact", 1.0) for place in exact[text])

"""Training questions that come back in the test: word for word, or nearly so."""

from __future__ import annotations

from typing import NamedTuple

from harness.benchmarks.prepare import Prepared

NEAR = 0.9
NGRAM_LENGTH = 5
# Test questions compared at a time, which keeps memory flat.
CHUNK = 256


class Leak(NamedTuple):
    """The ids of a training and a test question that are alike."""

    train: str
    test: str
    kind: str  # ``"exact"``, but for case and white space, or ``"near"``, of at least the similarity ``NEAR``
    similarity: float  # cosine of the weighted counts of runs of five characters, between 0 and 1


def leaks(prepared: Prepared) -> list[Leak]:
    """Return all leaks from training into test questions of a prepared benchmark, by test id, then training id."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    train, test = prepared.train, prepared.test
    if not train or not test:
        return []
    train_texts, test_texts = ([" ".join(item.question.lower().split()) for item in items] for items in (train, test))
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(NGRAM_LENGTH, NGRAM_LENGTH), lowercase=False)
    vectorizer.fit([*train_texts, *test_texts])
    columns = vectorizer.transform(train_texts).T
    pairs: list[Leak] = []
    for start in range(0, len(test), CHUNK):
        cosines = (vectorizer.transform(test_texts[start : start + CHUNK]) @ columns).tocoo()
        near = cosines.data >= NEAR
        for row, column, cosine in zip(cosines.row[near], cosines.col[near], cosines.data[near].tolist(), strict=True):
            is_exact = train_texts[column] == test_texts[start + row]
            kind, similarity = ("exact", 1.0) if is_exact else ("near", round(cosine, 4))
            pairs.append(Leak(train[column].id, test[start + row].id, kind, similarity))
    return sorted(pairs, key=lambda leak: (leak.test, leak.train))

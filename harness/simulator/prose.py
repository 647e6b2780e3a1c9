"""Sentences that read like reasoning about a question: they share its words and numbers and nothing with the answer."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.rng import Stream
from harness.simulator import tokens
from harness.simulator.parameters import Kind, Style

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Words that could pass for an answer, a box, a fence or an example wherever a parser looks for one.
_UNSAFE = re.compile(r"answer|boxed|fbox|`|>>>|\"\"\"|'''|~~~", re.IGNORECASE)
_WORDS_QUOTED = (4, 9)

_SENTENCES: dict[str, Sequence[str]] = {
    "solve": (
        "The question speaks of {quote}.",
        "What matters here is {quote}, so I keep it in view.",
        "From {quote} the next quantity follows directly.",
        "I write down what is given: {quote}.",
        "Using {number}, this part comes out cleanly.",
        "Both {number} and {other} enter at this point.",
        "Nothing else in the statement changes {quote}.",
        "That leaves {quote} to be dealt with.",
        "Putting this together with {quote} settles the step.",
        "A quick check against {quote} shows no contradiction.",
    ),
    "plan": (
        "Begin with {quote} and fix the notation for it.",
        "Treat {quote} as a separate part and finish it first.",
        "Keep {number} at hand, since later parts rely on it.",
        "Take care with {quote}, where a slip is likely.",
        "Then connect {quote} with what came before.",
        "Leave the check of {quote} to the end.",
    ),
    "critique": (
        "The treatment of {quote} deserves a second look.",
        "It is not obvious that {quote} was used as stated.",
        "The step that involves {number} should be repeated with care.",
        "I compared the argument with {quote} in the statement.",
        "The order of the steps around {quote} seems sound in itself.",
    ),
    "aggregate": (
        "The contributions agree on how to read {quote}.",
        "Where they differ, {quote} is the point at issue.",
        "I repeated the part that uses {number} myself.",
        "Comparing them against {quote} favours one reading.",
        "The remaining doubts concern {quote}.",
    ),
}
_TABLE_OF_KIND: dict[Kind, str] = {"plan": "plan", "critique": "critique", "aggregate": "aggregate"}
# Free of digits and of anything a parser could take for an answer, whatever the benchmark.
_WITHOUT_ANSWER = (
    "I am not certain how the statement is meant to be read.",
    "Several readings seem possible to me, and they lead to different results.",
    "More information would be needed to decide between them.",
    "I would rather not commit to a single result here.",
)


@dataclass(frozen=True)
class Vocabulary:
    """What sentences about a question may quote.

    Attributes:
        words: Its words in order, without those that a parser could mistake for an answer.
        numbers: The numbers among them; never empty.
    """

    words: Sequence[str]
    numbers: Sequence[str]


@functools.lru_cache(maxsize=4096)
def vocabulary(text: str) -> Vocabulary:
    """The words and numbers of a text."""
    words = [word for word in text.split() if not _UNSAFE.search(word)] or ["the statement"]
    return Vocabulary(words, _NUMBER.findall(" ".join(words)) or ["the first quantity"])


def reasoning(text: str, kind: Kind, style: Style, budget: float, stream: Stream) -> str:
    """Sentences about a text that take up about a number of tokens.

    Args:
        text: The question, or whatever the reply is about.
        kind: Kind of turn; decides which sentences there are.
        style: Numbers the sentences unless it is ``direct``.
        budget: Tokens; a sentence is added while at least half of it fits.
        stream: Draws.
    """
    chosen: list[str] = []
    for sentence in _numbered(_sentences(text, kind, stream), style):
        length = tokens.count(sentence)
        if length > 2 * budget:
            break
        chosen.append(sentence)
        budget -= length
    return ("\n" if style != "direct" else " ").join(chosen)


def without_answer(budget: float, stream: Stream) -> str:
    """Sentences that no parser finds an answer in; at least one."""
    chosen = [_WITHOUT_ANSWER[stream.below(len(_WITHOUT_ANSWER))]]
    while tokens.count(chosen[0]) * (len(chosen) + 0.5) < budget:
        chosen.append(_WITHOUT_ANSWER[stream.below(len(_WITHOUT_ANSWER))])
    return " ".join(chosen)


def keywords(text: str, stream: Stream) -> list[str]:
    """A few distinct longer words of a text, as one would look them up."""
    longer = list(dict.fromkeys(word.strip(".,;:!?()$\"'") for word in vocabulary(text).words))
    longer = [word for word in longer if len(word) > 5 and word.isalpha()] or ["general knowledge"]
    return list(dict.fromkeys(longer[stream.below(len(longer))] for _ in range(3)))


def _sentences(text: str, kind: Kind, stream: Stream) -> Iterator[str]:
    source = vocabulary(text)
    table = _SENTENCES[_TABLE_OF_KIND.get(kind, "solve")]
    while True:
        yield table[stream.below(len(table))].format(
            quote=_quote(source.words, stream),
            number=source.numbers[stream.below(len(source.numbers))],
            other=source.numbers[stream.below(len(source.numbers))],
        )


def _quote(words: Sequence[str], stream: Stream) -> str:
    shortest, longest = _WORDS_QUOTED
    length = shortest + stream.below(longest - shortest + 1)
    start = stream.below(max(1, len(words) - length + 1))
    return " ".join(words[start : start + length]).rstrip(".,;:!?")


def _numbered(sentences: Iterator[str], style: Style) -> Iterator[str]:
    if style == "direct":
        return sentences
    return (f"Step {number}: {sentence}" for number, sentence in enumerate(sentences, 1))

"""Token counts by the sentence encoder's tokenizer: local, exact, and additive over words, so that words are cached."""

from __future__ import annotations

import functools
import re

from harness.llm.encoder import load_tokenizer

# Only the separators of the tokenizer: str.split would also split at control characters, which it deletes.
_WORD = re.compile(r"[^ \t\n\r]+")
_CACHED_WORDS = 1 << 18
_tokenizer = functools.cache(load_tokenizer)


def count(text: str) -> int:
    """Return the number of tokens of a text, without special tokens."""
    return sum(map(_word_tokens, _WORD.findall(text)))


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of a text that has at most ``limit`` tokens."""
    for match in _WORD.finditer(text):
        tokens = _word_tokens(match.group())
        if tokens > limit:
            offsets = _tokenizer().encode(match.group(), add_special_tokens=False).offsets
            return text[: match.start() + (int(offsets[limit - 1][1]) if limit else 0)].rstrip()
        limit -= tokens
    return text


@functools.lru_cache(maxsize=_CACHED_WORDS)
def _word_tokens(word: str) -> int:
    return len(_tokenizer().encode(word, add_special_tokens=False).ids)

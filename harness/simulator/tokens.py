"""Token counts from a real tokenizer that needs no download.

The tokenizer is the WordPiece vocabulary of the sentence encoder. It is not that of any backbone: counts on prose come
close to theirs, while indentation, which it ignores, makes code look shorter. It was chosen because it is exact, local
and additive over blank-separated words, so a count is a sum over a cache.
"""

from __future__ import annotations

import functools
import re

from harness.llm.encoder import load_tokenizer

# Only what the tokenizer itself treats as a separator: str.split would also split at control characters it deletes.
_WORD = re.compile(r"[^ \t\n\r]+")
_CACHED_WORDS = 1 << 18
_tokenizer = functools.cache(load_tokenizer)


def count(text: str) -> int:
    """Number of tokens of a text, special tokens not included."""
    return sum(map(_word_tokens, _WORD.findall(text)))


def cut(text: str, limit: int) -> str:
    """The longest beginning of a text that has at most ``limit`` tokens."""
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

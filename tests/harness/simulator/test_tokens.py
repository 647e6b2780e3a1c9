from __future__ import annotations

from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.simulator import tokens

# Other work on the machine must not decide whether a property holds.
relaxed = hypothesis_settings(deadline=None)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def directly(text: str) -> int:
    return len(tokens.load_tokenizer().encode(text, add_special_tokens=False).ids)


@relaxed
@given(TEXTS)
@example("a\x1cb\x85c\u2028d\u00a0e")
@example("e\u0301 \u0301x 漢字 and [SEP]glued [MASK]")
@example("x" * 250 + " \r\n\t y")
def test_count_is_the_tokenizer_s(text: str):
    assert tokens.count(text) == directly(text)


def test_neither_truncated_nor_padded():
    assert tokens.count("word " * 5000) == 5000
    assert tokens.count("") == 0


@relaxed
@given(TEXTS, st.integers(0, 40))
def test_cut_keeps_the_longest_beginning_within_the_limit(text: str, limit: int):
    kept = tokens.cut(text, limit)
    assert text.startswith(kept)
    assert directly(kept) <= limit
    if directly(text) <= limit:
        assert kept == text

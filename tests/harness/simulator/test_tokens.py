from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from harness.simulator import tokens


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(0, 40))
@example("a\x1cb\x85c\u2028d\u00a0e", 3)
@example("e\u0301 \u0301x 漢字 and [SEP]glued [MASK]", 5)
@example("x" * 250 + " \r\n\t y", 9)
@example("word " * 5000, 4999)
@example("", 0)
def test_counts_and_cuts_are_the_tokenizer_s(text: str, limit: int) -> None:
    def directly(one: str) -> int:
        return len(tokens._tokenizer().encode(one, add_special_tokens=False).ids)

    kept = tokens.cut(text, limit)
    assert tokens.count(text) == directly(text)
    assert text.startswith(kept)
    assert directly(kept) <= limit
    assert kept == text or directly(text) > limit

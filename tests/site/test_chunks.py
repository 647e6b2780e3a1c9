from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.site.chunks import write_chunk

TEXTS = st.text() | st.sampled_from(
    ["</script>", "\u2028", "\ud800", "\udfff\ud800", "\0", "__proto__", '"); alert(1); ("']
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def content(path: Path) -> Any:
    """The value in a chunk, taken apart by what the format promises."""
    found = re.fullmatch(rb'GMR\.put\(("(?:[^"\\]|\\.)*"),"([A-Za-z0-9+/=]+)"\);\n', path.read_bytes())
    assert found
    return json.loads(found[1]), json.loads(zlib.decompress(base64.b64decode(found[2])))


@given(value=VALUES)
def test_a_value_comes_back_and_makes_the_same_bytes_again(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    folder = tmp_path_factory.mktemp("data")
    path = write_chunk(folder, "a/b", value)
    assert path == folder / "a" / "b.js"
    assert content(path) == ("a/b", value)
    first = path.read_bytes()
    assert first.isascii()
    assert write_chunk(folder, "a/b", value).read_bytes() == first


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_no_page_can_read_are_refused(tmp_path: Path, number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_chunk(tmp_path, "a", [number])


def test_what_repeats_is_small(tmp_path: Path) -> None:
    path = write_chunk(tmp_path, "a", ["the same words again and again"] * 10_000)
    assert path.stat().st_size < 4_000

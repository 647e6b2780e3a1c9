from hypothesis import given
from hypothesis import strategies as st

from harness import keys as module
from harness.keys import Keys

KEYS = st.binary(min_size=32, max_size=32).map(bytes.hex)
# Zeros at the end, the largest byte, neighbours: what a comparison of bytes could get wrong.
EDGES = ["00" * 32, "ff" * 32, "01" + "00" * 31, "00" * 31 + "01", "7f" * 32, "80" * 32]


@given(st.lists(st.one_of(KEYS, st.sampled_from(EDGES))), st.lists(st.one_of(KEYS, st.sampled_from(EDGES))))
def test_they_are_a_sorted_set(first: list[str], later: list[str]) -> None:
    found = Keys(first)
    assert found == set(first)
    found.update(later)
    found.update(first)
    assert list(found) == sorted({*first, *later})
    assert len(found) == len({*first, *later})
    assert all(key in found for key in first)
    assert all((key in found) == (key in {*first, *later}) for key in EDGES)


def test_many_are_put_in_order_on_the_way(monkeypatch) -> None:
    monkeypatch.setattr(module, "_COMPACTED_AT", 4)
    every = [f"{number * 7919 % 1000:064x}" for number in range(1000)]
    found = Keys(every + every)
    assert list(found) == sorted(every)
    assert found == set(every)

import math
import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import items
from harness.benchmarks.items import keyed_order, largest_remainder, share_split

IDS = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=60)
STRATA = {f"q{number}": "abcdefg"[number % 7] for number in range(200)}


@given(IDS, st.randoms(use_true_random=False))
def test_a_fifth_rounded_down_trains_whatever_the_order_of_reading(ids: list[str], rng: random.Random) -> None:
    split = share_split(ids, "toy")
    assert len(split.train) == int(0.2 * len(ids))
    assert sorted([*split.train, *split.test]) == sorted(ids)
    assert share_split(rng.sample(ids, len(ids)), "toy") == split


def test_the_order_never_changes_and_looks_random() -> None:
    assert keyed_order(list("abcdef"), "p") == ["e", "c", "d", "f", "a", "b"]
    ids = [f"{number:04d}" for number in range(1000)]
    order = keyed_order(ids, "p")
    assert order != keyed_order(ids, "q")
    assert [id_ for id_ in keyed_order([*ids, "new"], "p") if id_ != "new"] == order
    # The mean rank of the first half is normal with deviation 500 / sqrt(3 * 500), about 9.1.
    assert abs(sum(order.index(id_) for id_ in ids[:500]) / 500 - 499.5) < 4 * 9.2


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 5000), min_size=1, max_size=14), st.data())
def test_largest_remainder_stays_within_one_of_the_share(counts: dict[str, int], data: st.DataObject) -> None:
    total = data.draw(st.integers(0, sum(counts.values())))
    seats = largest_remainder(counts, total)
    assert sum(seats.values()) == total
    for name, count in counts.items():
        assert abs(seats[name] - total * count / sum(counts.values())) < 1
        assert 0 <= seats[name] <= count


def test_samples_have_the_sizes_of_their_rules() -> None:
    whole = Counter(STRATA.values())
    tenth, sample = items.tenth_of_each(STRATA, "toy"), items.proportional_sample(STRATA, 33, "toy")
    assert Counter(STRATA[id_] for id_ in tenth) == {name: math.ceil(count / 10) for name, count in whole.items()}
    assert len(set(sample)) == len(sample) == 33
    assert Counter(STRATA[id_] for id_ in sample) == largest_remainder(whole, 33)

"""What the long measurements compare with is right itself."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.schedule import Step, greedy
from tests.evidence.server import Model, report, seconds_of, served, tokens_of


def chains(*lengths: tuple[float, ...]) -> list[list[Step]]:
    return [
        [Step(f"{chain}.{place}", seconds) for place, seconds in enumerate(one)] for chain, one in enumerate(lengths)
    ]


@pytest.mark.parametrize(
    ("made", "places", "seconds"),
    [
        (chains((1, 2, 3)), 1, 6),
        (chains((1, 2), (4,)), 2, 4),
        (chains((1,), (1,), (1,)), 2, 2),
        # The second call of the first chain waits behind the third chain, which was ready before it.
        (chains((1, 1), (3,), (2,)), 2, 4),
        ([[Step("a", 2), Step("b", 1)], [Step("a", 2), Step("c", 1)]], 4, 3),
        ([[Step("a", 1)], [Step("b", 3), Step("a", 1)]], 1, 4),
        ([[]], 1, 0),
    ],
)
def test_the_greedy_schedule(made: list[list[Step]], places: int, seconds: float) -> None:
    assert greedy(made, places) == seconds


lengths = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8)


@given(lengths)
def test_it_lies_between_its_bounds_and_needs_no_more_time_for_more_places_than_chains(
    lengths: list[tuple[float, ...]],
) -> None:
    made, work = chains(*lengths), sum(map(sum, lengths))
    longest = max(map(sum, lengths))
    found = [greedy(made, places) for places in range(1, len(lengths) + 2)]
    assert found[0] == work
    assert found[-1] == found[-2] == longest
    for places, seconds in enumerate(found, 1):
        # Graham's bound for any greedy schedule.
        assert max(longest, work / places) <= seconds <= work / places + longest


def test_replies_of_the_modelled_server_take_as_long_as_they_should() -> None:
    model = Model(2, 3.0, 0.5)
    found = [tokens_of(str(number).encode(), model.spread) for number in range(1000)]
    assert (min(found), max(found)) == (50, 150)
    assert abs(sum(found) / 1000 - 100) < 3
    assert [seconds_of(tokens, model) for tokens in (50, 100, 150)] == [1.5, 3.0, 4.5]
    assert any(one != other for one, other in pairwise(found))


def test_the_modelled_server_reports_what_it_did() -> None:
    with served(Model(2, 0.01)) as url:
        assert report(url)["requests"] == 0

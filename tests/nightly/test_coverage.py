"""Error rates and coverage in docs/report.md: ``pytest -m nightly -s tests/nightly/test_coverage.py``."""

import itertools

import pytest

from tests.analysis.test_coverage import DISCORDANT, LIMIT, SIZES, covered, exact_rate, rates

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def test_equal_methods() -> None:
    for n, discordant in itertools.product(SIZES, DISCORDANT):
        print(f"\nn = {n}, {discordant:.0%} discordant: exactly {100 * exact_rate(n, discordant):.1f} %", end="")
        for seeds, rivals in itertools.product((1, 3), (1, 20)):
            found = rates(2000 if rivals == 1 else 500, n, discordant, rivals=rivals, seeds=seeds)
            told = " and ".join(f"{100 * rate:.1f}" for rate in found)
            print(f"; {seeds} seeds, {rivals} rivals: contradicted and reproduced {told} %", end="")
            assert max(found) <= LIMIT


@pytest.mark.parametrize("n", SIZES)
def test_a_leader_by_one_point_over_twenty(n: int) -> None:
    fails, holds = rates(1000, n, 0.05, rivals=20, lead=0.01)
    print(f"\nn = {n}: contradicted {100 * fails:.1f} %, reproduced {100 * holds:.1f} %")
    assert fails <= LIMIT


def test_intervals_of_three_seeds() -> None:
    for n, right, spread in itertools.product(SIZES, (0.7, 0.9), (0.0, 0.1, 0.3, 1.0)):
        share = covered(2000, n, right, spread)
        print(f"\nn = {n}, {right:.0%} right, logits of trainings ± {spread}: covers {100 * share:.1f} %", end="")
        assert share >= 0.9

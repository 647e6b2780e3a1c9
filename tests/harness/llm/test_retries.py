"""How long a call waits between its attempts."""

import pytest

from harness.llm.retries import MAX_RETRY_AFTER_S, delay_s


def test_delays_double_up_to_half_a_minute_and_differ_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests do not wait.
    monkeypatch.undo()
    means = [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
    for attempt, mean in enumerate(means, 1):
        delays = [delay_s(f"key {number}", attempt) for number in range(500)]
        assert 0.5 * mean <= min(delays) < 0.55 * mean
        assert 1.45 * mean < max(delays) <= 1.5 * mean
        assert sum(delays) / 500 == pytest.approx(mean, rel=0.05)
    assert delay_s("key", 3) == delay_s("key", 3)
    assert delay_s("key", 9, 1.0) == delay_s("key", 9)


@pytest.mark.parametrize(("wish", "counts"), [(20.0, 20.0), (119.0, 119.0), (MAX_RETRY_AFTER_S, 120.0), (1e6, 120.0)])
def test_calls_that_a_server_refused_together_do_not_come_back_together(wish: float, counts: float) -> None:
    delays = [delay_s(f"key {number}", 1, wish) for number in range(500)]
    assert counts <= min(delays) < 1.01 * counts
    assert 1.49 * counts < max(delays) <= 1.5 * counts
    assert sum(delays) / 500 == pytest.approx(1.25 * counts, rel=0.02)
    assert len(set(delays)) == 500
    assert delay_s("key 7", 1, wish) == delays[7]

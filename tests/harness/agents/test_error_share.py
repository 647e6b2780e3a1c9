"""When too many attempts have failed, the run stops and says which errors came from where."""

import pytest

from harness.agents.error_share import ErrorShare, places_of
from harness.agents.trajectory import Call
from harness.benchmarks.items import Status
from harness.errors import UserError
from harness.llm.endpoints import Endpoint, simulated


def failed(error: str | None, backbone: str = "small") -> Call:
    return Call(1, "solve", 0, backbone, "", "key", 0, 0, 0.0, True, "error", error)


@pytest.mark.parametrize(("limit", "attempts", "allowed"), [(0.05, 1, 1), (0.1, 20, 2), (0.1, 100, 10), (0.0, 500, 0)])
def test_the_share_is_taken_over_at_least_twenty(limit: float, attempts: int, allowed: int) -> None:
    share = ErrorShare(limit)
    for _ in range(attempts - allowed):
        share.note(Status.GRADED, None)
    for _ in range(allowed):
        share.note(Status.CALL_FAILED, failed("down"))
    with pytest.raises(UserError, match=f"{allowed + 1} of {attempts + 1} attempts failed"):
        share.note(Status.CALL_FAILED, failed("down"))


def test_wrong_answers_are_no_failures_even_where_an_earlier_call_failed() -> None:
    share = ErrorShare(0.0)
    for status in (Status.GRADED, Status.UNPARSABLE, Status.EMPTY, Status.TRUNCATED):
        share.note(status, failed("down"))
    assert (share.attempts, share.failed) == (4, 0)


def stopped_by(share: ErrorShare, *calls: Call | None) -> str:
    *before, last = calls
    for call in before:
        share.note(Status.CALL_FAILED, call)
    with pytest.raises(UserError) as caught:
        share.note(Status.CALL_FAILED, last)
    return str(caught.value)


def test_the_most_frequent_errors_are_named_with_their_number_and_their_place() -> None:
    places = {"small": "http://one:8001/v1", "large": "http://two:8002/v1"}
    errors = ["Error code: 400 - 5321 tokens > 4096"] * 2 + ["Error code: 400 - 7000 tokens > 4096", "odd", "rare"]
    calls = [
        *[failed(error) for error in errors],
        *[failed("Error code: 500", "large") for _ in range(5)],
        *[failed("reset") for _ in range(2)],
    ]
    assert stopped_by(ErrorShare(0.55, places), *calls) == (
        "12 of 12 attempts failed (limit 55%): "
        "5 x 'Error code: 500' from large at http://two:8002/v1, "
        "3 x 'Error code: 400 - 5321 tokens > 4096' from small at http://one:8001/v1, "
        "2 x 'reset' from small at http://one:8001/v1, 2 others. "
        "Mend the cause, then `gmr cell --retry-errors` asks them again"
    )


def test_long_errors_stay_one_short_line_and_identifiers_are_no_difference() -> None:
    message = stopped_by(ErrorShare(0.0), failed("<html>\n  <body>" + "x" * 10_000))
    assert "1 x '<html> <body>xxx" in message
    assert "xxx...' from small." in message
    assert len(message) < 400
    assert "\n" not in message
    died = [failed("request 7f3a9b21-aa01 died"), failed("request 0c11d2e4-bb02 died"), failed("x")]
    message = stopped_by(ErrorShare(0.1), *died)
    assert "2 x 'request 7f3a9b21-aa01 died' from small, 1 x 'x' from small." in message


def test_a_place_is_every_server_of_a_backbone() -> None:
    endpoints = {"small": Endpoint(urls=("http://a/v1", "http://b/v1")), "large": simulated()}
    assert places_of(endpoints) == {"small": "http://a/v1 and http://b/v1", "large": "in-process"}

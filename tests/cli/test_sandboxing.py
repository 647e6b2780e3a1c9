"""``gmr sandbox``: which levels of confinement work here."""

import pytest

from tests.command import gmr


@pytest.mark.parametrize(
    ("refusals", "status", "lines"),
    [
        ({}, 0, ["full      works", "rlimit    works"]),
        ({"full": "unshare: no"}, 1, ["full      does not work: unshare: no", "rlimit    works"]),
    ],
)
def test_it_says_what_works_here(
    monkeypatch: pytest.MonkeyPatch, refusals: dict[str, str], status: int, lines: list[str]
) -> None:
    monkeypatch.setattr("harness.sandbox.pool.refusal", lambda level: refusals.get(level, ""))
    found = gmr("sandbox")
    assert (found.exit_code, found.stdout.splitlines()) == (status, lines)

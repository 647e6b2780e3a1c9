"""Where backbones are served, as users write it down."""

from pathlib import Path

import pytest

from harness.errors import UserError
from harness.llm.endpoints import Endpoint, load, simulated


def test_a_missing_endpoint_and_a_missing_key_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text("m: {url: 'http://localhost:1/v1', key_env: GMR_TEST_KEY}\n")
    with pytest.raises(UserError, match="unknown endpoint for backbone 'n'"):
        load(path, ["n"])
    monkeypatch.delenv("GMR_TEST_KEY", raising=False)
    with pytest.raises(UserError, match="set the environment variable GMR_TEST_KEY"):
        _ = load(path, ["m"])["m"].api_key
    path.write_text("m: {url: 'http://localhost:1/v1', max_in_flight: 0}\n")
    with pytest.raises(UserError, match=r"m\.max_in_flight: 0 should be greater than 0"):
        load(path, ["m"])
    path.write_text("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', max_in_flight: 2}\n")
    with pytest.raises(UserError, match="m and n share http://x/v1; give them the same max_in_flight"):
        load(path, ["m", "n"])
    path.write_text("m: {url: 'http://x/v1', key_env: A}\nn: {url: 'http://x/v1', key_env: B}\n")
    with pytest.raises(UserError, match="m and n share http://x/v1; give them the same key_env"):
        load(path, ["m", "n"])
    path.write_text("m: {uri: 'http://localhost:1/v1'}\n")
    with pytest.raises(UserError, match="did you mean 'url'"):
        load(path, ["m"])


def test_an_endpoint_has_one_url_or_several(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text("m: {urls: ['http://a/v1', 'http://b/v1'], timeout_s: 3}\nn: {url: 'http://c/v1'}\n")
    assert load(path, ["m", "n"]) == {
        "m": Endpoint(("http://a/v1", "http://b/v1"), timeout_s=3),
        "n": Endpoint(("http://c/v1",)),
    }
    for entry in ("{}", "{url: 'http://a/v1', urls: ['http://b/v1']}"):
        path.write_text(f"m: {entry}\n")
        with pytest.raises(UserError, match="m needs either url, for one server, or urls"):
            load(path, ["m"])
    for entry, message in (
        ("[]", "should have at least 1 item"),
        ("['http://a/v1', 'http://a/v1']", "stands there twice"),
    ):
        path.write_text(f"m: {{urls: {entry}}}\n")
        with pytest.raises(UserError, match=message):
            load(path, ["m"])
    path.write_text("m: {urls: ['http://x/v1', 'http://y/v1']}\nn: {url: 'http://y/v1', max_in_flight: 2}\n")
    with pytest.raises(UserError, match="m and n share http://y/v1; give them the same max_in_flight"):
        load(path, ["m", "n"])


def test_simulated_backbones_are_in_this_process_or_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GMR_SIMULATED_URL", raising=False)
    assert simulated().urls == ("in-process",)
    monkeypatch.setenv("GMR_SIMULATED_URL", "http://host:8000/v1")
    assert simulated().urls == ("http://host:8000/v1",)

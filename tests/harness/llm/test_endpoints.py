"""Where backbones are served, as users write it down."""

from pathlib import Path

import pytest

from harness.errors import UserError
from harness.llm.endpoints import load


def test_an_endpoint_has_one_url_or_several(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text("m: {urls: ['http://a/v1', 'http://b/v1'], timeout_s: 3}\nn: {url: 'http://c/v1'}\n")
    several, one = load(path, ["m", "n"]).values()
    assert (several.urls, several.timeout_s, one.urls) == (("http://a/v1", "http://b/v1"), 3, ("http://c/v1",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n: {url: 'http://x/v1'}", "unknown endpoint for backbone 'm'"),
        ("m: {url: 'http://a/v1', urls: ['http://b/v1']}", "m: needs either url, for one server, or urls"),
        ("m: {url: 'x/v1'}", "m.url: 'x/v1' should match pattern"),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', max_in_flight: 2}", "share .*give them the same max_in_fl"),
        (
            "m: {urls: ['http://x/v1', 'http://y/v1']}\nn: {url: 'http://y/v1', key_env: B}",
            "give them the same key_env",
        ),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', timeout_s: 2}", "give them the same timeout_s"),
        ("m: {url: 'http://x/v1'}\nn: {url: 'http://x/v1', extended: false}", "give them the same extended"),
    ],
)
def test_a_slip_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "endpoints.yaml").write_text(text)
    with pytest.raises(UserError, match=message) as told:
        load(tmp_path / "endpoints.yaml", ["m", "n"] if "\n" in text else ["m"])
    assert "\n" not in str(told.value)

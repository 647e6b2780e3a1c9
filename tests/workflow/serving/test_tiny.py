"""The tiny model: the same files everywhere, and such that its replies end."""

from pathlib import Path

import numpy as np
import orjson
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from workflow.serving import tiny


def test_it_is_the_same_wherever_it_is_made_and_made_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        tiny.make(folder)
    names = sorted(path.name for path in one.iterdir())
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
    before = (one / "config.json").stat().st_mtime_ns
    tiny.make(one)
    assert (one / "config.json").stat().st_mtime_ns == before


def test_weights_vocabulary_and_configuration_agree(tmp_path: Path) -> None:
    tiny.make(tmp_path)
    settings = orjson.loads((tmp_path / "config.json").read_bytes())
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    weights = load_file(tmp_path / "model.safetensors")
    assert weights["lm_head.weight"].shape == (tokenizer.get_vocab_size(), settings["hidden_size"])
    assert settings["eos_token_id"] == tokenizer.token_to_id("</s>")
    loudness = np.linalg.norm(weights["lm_head.weight"], axis=1)
    assert loudness.argmax() == settings["eos_token_id"]
    text = "def f(x):\n    return “x” + '\N{GREEK SMALL LETTER PI}'"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text

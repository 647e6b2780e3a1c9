"""The tiny model: the same files everywhere, and such that its replies end."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from harness.files import ROOT


def made(folder: Path) -> Path:
    subprocess.run([sys.executable, str(ROOT / "serving" / "tiny_model.py"), str(folder)], check=True)
    return folder


def test_weights_vocabulary_and_configuration_agree_wherever_it_is_made(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one"), made(tmp_path / "other")
    names = {path.name: path.read_bytes() for path in one.iterdir()}
    assert names == {path.name: path.read_bytes() for path in other.iterdir()}
    settings = orjson.loads(names["config.json"])
    tokenizer = Tokenizer.from_file(str(one / "tokenizer.json"))
    weights = load_file(one / "model.safetensors")
    assert weights["lm_head.weight"].shape == (tokenizer.get_vocab_size(), settings["hidden_size"])
    assert settings["eos_token_id"] == tokenizer.token_to_id("</s>")
    loudness = np.linalg.norm(weights["lm_head.weight"], axis=1)
    assert loudness.argmax() == settings["eos_token_id"]
    text = "def f(x):\n    return “x” + '\N{GREEK SMALL LETTER PI}'"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text

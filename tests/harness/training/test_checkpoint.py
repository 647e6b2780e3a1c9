"""Checkpoints: what is saved comes back, equal content is equal bytes, and what is none is refused."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import numpy as safetensors

from harness.errors import UserError
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint

TENSORS = {"b.weight": np.arange(6, dtype=np.float64).reshape(2, 3), "a": np.float32([0.1]), "step": np.array(3.0)}
FACTS: dict[str, Any] = {"epoch": 2, "roles": [["z", "last first"], ["a", "é"]], "config": {"x": None}}


def save(path: Path, **changes: Any) -> bytes:
    checkpoint.save(path, Checkpoint(**{"tensors": TENSORS, "metadata": FACTS, **changes}))
    return path.read_bytes()


def test_what_is_saved_comes_back_and_equal_content_is_equal_bytes_in_any_order(tmp_path: Path) -> None:
    base = save(tmp_path / "a.safetensors")
    stored = checkpoint.load(tmp_path / "a.safetensors")
    assert stored.metadata == FACTS
    assert {name: (value.dtype, value.tolist()) for name, value in stored.tensors.items()} == {
        name: (value.dtype, value.tolist()) for name, value in TENSORS.items()
    }
    turned = {"tensors": dict(reversed(TENSORS.items())), "metadata": dict(reversed(FACTS.items()))}
    assert base == save(tmp_path / "b.safetensors", **turned)
    assert base != save(tmp_path / "c.safetensors", metadata={**FACTS, "epoch": 3})
    assert base != save(tmp_path / "c.safetensors", tensors={**TENSORS, "step": np.array(4.0)})


def test_what_is_no_checkpoint_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(UserError, match=r"there is no checkpoint .*; train the method first"):
        checkpoint.load(path)
    torn = safetensors.save(TENSORS, metadata={"facts": "{"})
    for content in (save(path)[:-5], b"", pickle.dumps({"weights": [1.0]}), safetensors.save(TENSORS), torn):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"x\.safetensors is not a.*; delete it and") as caught:
            checkpoint.load(path)
        assert "\n" not in str(caught.value)

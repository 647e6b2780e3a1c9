import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors import numpy as safetensors

from harness.errors import UserError
from harness.files import ROOT
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint

TENSORS = {"b.weight": np.arange(6, dtype=np.float64).reshape(2, 3), "a": np.float32([0.1]), "step": np.array(3.0)}
FACTS: dict[str, Any] = {
    "identity": "one",
    "epoch": 2,
    "roles": [["z", "last first"], ["a", "é"]],
    "config": {"x": None},
}


def save(path: Path, **changes: Any) -> bytes:
    checkpoint.save(path, Checkpoint(**{"tensors": TENSORS, "facts": FACTS, **changes}))
    return path.read_bytes()


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save(tmp_path / "x.safetensors")
    found = checkpoint.load(tmp_path / "x.safetensors")
    assert found.facts == FACTS
    assert found.tensors.keys() == TENSORS.keys()
    for name, value in found.tensors.items():
        assert (value.dtype, value.shape) == (TENSORS[name].dtype, TENSORS[name].shape)
        assert np.array_equal(value, TENSORS[name])


def test_nothing_learned_is_a_checkpoint_too(tmp_path: Path) -> None:
    save(tmp_path / "x.safetensors", tensors={})
    assert checkpoint.load(tmp_path / "x.safetensors").tensors == {}


def test_equal_content_is_equal_bytes_in_any_order(tmp_path: Path) -> None:
    base = save(tmp_path / "a.safetensors")
    turned = save(
        tmp_path / "b.safetensors",
        tensors=dict(reversed(TENSORS.items())),
        facts=dict(reversed(FACTS.items())),
    )
    assert base == turned
    assert base != save(tmp_path / "c.safetensors", facts={**FACTS, "epoch": 3})
    assert base != save(tmp_path / "c.safetensors", tensors={**TENSORS, "step": np.array(4.0)})


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.harness.training import test_checkpoint;"
        "test_checkpoint.save(Path(sys.argv[1]))"
    )
    path = tmp_path / "other.safetensors"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True, env=environment)
    assert path.read_bytes() == save(tmp_path / "own.safetensors")


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    base = save(tmp_path / "x.safetensors")
    with pytest.raises(TypeError):
        save(tmp_path / "x.safetensors", facts={"epoch": object()})
    assert (tmp_path / "x.safetensors").read_bytes() == base
    assert len(list(tmp_path.iterdir())) == 1


def other_formats(whole: bytes) -> dict[str, bytes]:
    return {
        "cut short": whole[:-5],
        "empty": b"",
        "noise": b"\xff" * 100,
        "a pickle": pickle.dumps({"weights": [1.0]}),
        "without facts": safetensors.save(TENSORS),
        "facts that are no JSON": safetensors.save(TENSORS, metadata={"facts": "{"}),
    }


@pytest.mark.parametrize("kind", other_formats(b""))
def test_what_is_no_checkpoint_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(other_formats(save(path))[kind])
    with pytest.raises(
        UserError, match=r"x\.safetensors is not a checkpoint of this suite .*; delete it and"
    ) as caught:
        checkpoint.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version_of_the_format_is_refused(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "x.safetensors"
    facts = orjson.dumps({**FACTS, "format": version}).decode()
    path.write_bytes(safetensors.save(TENSORS, metadata={"facts": facts}))
    with pytest.raises(UserError, match="written by another version of the suite; delete it and train"):
        checkpoint.load(path)


def test_no_checkpoint_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no checkpoint .*; train the method first"):
        checkpoint.load(tmp_path / "x.safetensors")

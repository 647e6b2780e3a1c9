"""Checkpoints: arrays with JSON metadata in safetensors files, which cannot contain code."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson
from numpy.typing import NDArray

from harness.errors import UserError
from harness.files import write_atomically

Tensors = Mapping[str, NDArray[np.generic]]
# A single key, since safetensors does not guarantee the order of several.
_KEY = "facts"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State of a method after an epoch."""

    tensors: Tensors
    metadata: Mapping[str, Any]  # method, configuration, setting, epoch; JSON values


class State(NamedTuple):
    """State of a method in training."""

    learned: Tensors
    optimiser: Tensors  # further tensors, needed only to resume
    metadata: Mapping[str, Any]  # JSON values


class Resumable(Protocol):
    """Method whose training can resume."""

    def state(self) -> State: ...

    def load(self, checkpoint: Checkpoint) -> None:
        """Restore a state. The optimiser state is missing if the method only answers."""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint deterministically."""
    from safetensors import numpy as safetensors

    metadata = orjson.dumps(checkpoint.metadata, option=orjson.OPT_SORT_KEYS).decode()
    tensors = {name: checkpoint.tensors[name] for name in sorted(checkpoint.tensors)}
    write_atomically(path, safetensors.save(tensors, metadata={_KEY: metadata}))


def load(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises UserError if it is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = orjson.loads((file.metadata() or {})[_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  not a mapping
    except FileNotFoundError as error:
        raise UserError(f"there is no checkpoint {path}; train the method first") from error
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path} is not a checkpoint of this suite ({error}); delete it and train the method again"
        ) from error
    return Checkpoint(tensors, metadata)

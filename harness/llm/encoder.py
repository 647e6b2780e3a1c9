"""Frozen sentence encoder: maps the first ``max_tokens`` of a text (D-GEN-3) to a unit vector, deterministically."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from pydantic import Field

from harness.database import machine_folder
from harness.errors import UserError
from harness.files import ROOT, Declaration, Sha256, read, sha256, writing

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

# Dimension of a vector. The networks of the methods are built for it.
EMBEDDING = 384
DECLARATION = ROOT / "config" / "encoder.yaml"
_OPSET = 17  # of the ONNX graph
_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"
# Without modules.json the library silently skips the normalisation.
_FILES = (_WEIGHTS, "config.json", _TOKENIZER, "modules.json")


class Declared(Declaration):
    """Declaration of the encoder in ``config/encoder.yaml``."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # on the hub
    # A Python package whose get_model_path() returns the model folder, or a path with a slash.
    source: Annotated[str, Field(pattern="^([A-Za-z_][A-Za-z0-9_.]*|.*/.*)$")]
    sha256: Sha256  # of model.safetensors
    dimension: Annotated[int, Field(ge=EMBEDDING, le=EMBEDDING)]  # of a vector
    max_tokens: Annotated[int, Field(ge=3)]  # word pieces read, including two special ones


class Encoded(NamedTuple):
    """Embedding of a text."""

    vector: NDArray[np.float32]  # of the first max_tokens word pieces, shape (dimension,), unit length
    tokens: int  # word pieces of the whole text, including special ones


class SentenceEncoder:
    """Encoder declared in ``config/encoder.yaml``: float32 on one CPU thread, in ONNX Runtime (D-GEN-8)."""

    def __init__(self) -> None:
        self._entry: Declared = read(DECLARATION, Declared)
        self.max_tokens, self.weights = self._entry.max_tokens, self._entry.sha256

    @functools.cached_property
    def identity(self) -> str:
        """Graph, runtime and CPU instruction set, which together determine every byte of a vector."""
        import torch  # Lazy: takes seconds to import.

        instructions = "-".join(torch.backends.cpu.get_cpu_capability().lower().split())
        return f"{self._graph_name}-onnxruntime{version('onnxruntime')}-{instructions}"

    def encode(self, text: str) -> Encoded:
        """Embed a text. Thread-safe. Raises UserError if the model files are missing or altered."""
        tokenizer, session = self._model
        pieces = tokenizer.encode(text).ids
        read = pieces if len(pieces) <= self.max_tokens else [*pieces[: self.max_tokens - 1], pieces[-1]]
        (vectors,) = session.run(None, {"pieces": np.array([read], dtype=np.int64)})
        return Encoded(vectors[0], len(pieces))

    @functools.cached_property
    def _graph_name(self) -> str:
        makers = "-".join(f"{maker}{version(maker)}" for maker in ("sentence-transformers", "transformers", "torch"))
        return f"{self._entry.name}-{self.weights[:16]}-fp32-opset{_OPSET}-{makers}"

    @functools.cached_property
    def _model(self) -> tuple[Tokenizer, InferenceSession]:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        folder = _folder(self._entry)
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        options = SessionOptions()
        # The number of threads changes the order of summation, and with it the last digits.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return tokenizer, InferenceSession(self._graph(folder), options, providers=["CPUExecutionProvider"])

    def _graph(self, folder: Path) -> Path:
        """Return the ONNX graph of this machine, exported once even if several cells start together."""
        graph = machine_folder() / f"{self._graph_name}.onnx"
        if graph.exists():
            return graph
        with writing(graph):
            held = FileLock(graph.with_suffix(".lock")).acquire()
        with held:
            if not graph.exists():
                self._export(folder, graph)
        return graph

    def _export(self, folder: Path, graph: Path) -> None:
        if (found := sha256(folder / _WEIGHTS)) != self.weights:
            what = f"{folder / _WEIGHTS} has sha256 {found[:16]}..., expected {self.weights[:16]}..."
            raise UserError(what, f"restore those of {self._entry.name}, or correct `source` in {DECLARATION}")
        unfinished = graph.with_suffix(".unfinished").absolute()
        command = [sys.executable, "-m", "harness.llm.encoder", str(folder.resolve()), str(unfinished)]
        # A separate process, since importing sentence-transformers takes ten seconds.
        done = subprocess.run(command, cwd=ROOT, capture_output=True)  # noqa: S603  our own module
        if done.returncode:
            reason = (done.stderr.decode().splitlines() or [f"status {done.returncode}"])[-1]
            raise UserError(f"{folder} cannot be loaded ({reason}); restore the files of {self._entry.name}")
        unfinished.replace(graph)


def _folder(entry: Declared) -> Path:
    try:
        by_name = "/" in entry.source
        folder = Path(entry.source if by_name else importlib.import_module(entry.source).get_model_path()).expanduser()
    except (ImportError, AttributeError) as error:
        what = f"{DECLARATION}: `source` {entry.source!r} is not an installed package with model files ({error})"
        raise UserError(f"{what}; install it, or name a folder, written with a slash") from error
    for file in _FILES:
        if not (folder / file).is_file():
            cure = f"restore all files of {entry.name}, or correct `source` in {DECLARATION}"
            raise UserError(f"{folder} has no {file}", cure)
    return folder


def _export_graph(model: str, graph: str) -> None:
    """Export a model that maps word pieces (1, n) to a unit vector (1, dimension)."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from sentence_transformers import SentenceTransformer

    # "eager" attention is exported as plain matrix products, without the special cases of torch's fused operator.
    attention = {"attn_implementation": "eager"}
    encoder = SentenceTransformer(model, device="cpu", local_files_only=True, model_kwargs=attention)

    class Pieces(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder.float().eval()

        def forward(self, pieces: torch.Tensor) -> torch.Tensor:
            read = {"input_ids": pieces, "attention_mask": torch.ones_like(pieces)}
            return self.encoder(read)["sentence_embedding"]

    with torch.no_grad():
        torch.onnx.export(
            Pieces(),
            (torch.arange(10)[None],),
            graph,
            input_names=["pieces"],
            output_names=["vector"],
            dynamic_axes={"pieces": {1: "length"}},
            opset_version=_OPSET,
            dynamo=False,  # the dynamo exporter needs onnxscript
        )


if __name__ == "__main__":
    _export_graph(*sys.argv[1:])

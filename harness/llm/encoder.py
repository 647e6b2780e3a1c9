"""The frozen sentence encoder, and embeddings: looked up in recordings, the cell's file and the cache, else computed.

The encoder maps the first ``max_tokens`` of a text (D-GEN-3) to a unit vector, deterministically.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from pydantic import Field

from harness.concurrency import InFlight, processors
from harness.database import Cache, connect, machine_folder
from harness.errors import UserError
from harness.files import ROOT, Declaration, Sha256, read, sha256, writing

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

# Dimension of a vector. The networks of the methods are built for it.
EMBEDDING = 384
DECLARATION = ROOT / "config" / "encoder.yaml"
_OPSET = 17  # of the ONNX graph
_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"
# Without modules.json the library silently skips the normalisation.
_FILES = (_WEIGHTS, "config.json", _TOKENIZER, "modules.json")

# Size of a stored embedding: four bytes with the tokens of the text, then the vector.
VECTOR_BYTES = 4 + 4 * EMBEDDING
# Maximum distance of a recorded vector from the encoder's: a cosine of 0.9999995. Other processors change the sixth
# digit. A cosine of 0.999 would leave room for a coordinate that tells the right model.
_NEAR = 1e-3


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
        if not graph.exists():
            if (found := sha256(folder / _WEIGHTS)) != self.weights:
                what = f"{folder / _WEIGHTS} has sha256 {found[:16]}..., expected {self.weights[:16]}..."
                raise UserError(what, f"restore those of {self._entry.name}, or correct `source` in {DECLARATION}")
            with writing(graph), FileLock(graph.with_suffix(".lock")):
                if not graph.exists():
                    self._export(folder, graph)
        return graph

    def _export(self, folder: Path, graph: Path) -> None:
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
    if missing := [file for file in _FILES if not (folder / file).is_file()]:
        cure = f"restore all files of {entry.name}, or correct `source` in {DECLARATION}"
        raise UserError(f"{folder} has no {missing[0]}", cure)
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


@dataclass
class VectorCheck:
    """How many recorded vectors in use are computed again, and what came out. Cells of a replay share one."""

    most: float = 64  # sample of a cell; inf: all
    used: int = 0
    passed: set[bytes] = field(default_factory=set)  # keys
    problem: str = ""  # why none could be computed

    def __str__(self) -> str:
        if self.problem:
            return f"vectors not checked: {self.problem}"
        return f"{len(self.passed)} of {self.used} recorded vectors are the encoder's"


class Embeddings(AbstractAsyncContextManager["Embeddings"]):
    """Embeddings of texts, from the first place that has them.

    The cell's file is keyed by weights and text alone, so that a cell resumed or replayed on another CPU or with other
    library versions gets the same vectors and makes the same calls.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        cache: Cache,
        recorded: Cache,  # file of the cell
        others: Callable[[bytes], bytes | None] = lambda key: None,  # look-up in recordings
        check: VectorCheck | None = None,
        keeps: bool = False,  # also writes vectors from recordings to the cell's file, which is then whole
    ) -> None:
        self.encoder, self.check, self._keeps = encoder, check or VectorCheck(), keeps
        self._cache, self._recorded, self._others = cache, recorded, others
        self._used: dict[bytes, tuple[str, bytes]] = {}  # texts and recorded vectors
        self._threads = ThreadPoolExecutor(max_workers=processors(), thread_name_prefix="encode")
        self._in_flight: InFlight[Encoded] = InFlight()

    async def embed(self, text: str) -> Encoded:
        """Embed a text. The vector is read-only. Concurrent callers share one computation."""
        key = hashlib.sha256(f"{self.encoder.weights}\0{text}".encode()).digest()
        if (stored := self._others(key)) is not None:
            self._used[key] = text, stored
            if self._keeps:
                self._recorded.put("embeddings", key, stored)
        elif (stored := self._recorded.get("embeddings", key)) is None:
            run = asyncio.get_running_loop().run_in_executor
            return await self._in_flight.run_once(key, lambda: run(self._threads, self._compute, key, text))
        return _unpack(stored)

    async def check_recorded(self) -> None:
        """Compute a random sample of the recorded vectors again. Raises UserError if one is not the encoder's."""
        unchecked = [key for key in self._used if key not in self.check.passed]
        if not unchecked or self.check.problem:
            return
        self.check.used += len(unchecked)
        # Nobody can foresee it.
        sample = SystemRandom().sample(unchecked, int(min(self.check.most, len(unchecked))))
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(self._threads, self.encoder.encode, self._used[key][0]) for key in sample]
        try:
            encoded = await asyncio.gather(*work)
        except UserError as error:
            self.check.problem = str(error)
            logger.warning("%s", self.check)
            return
        for key, computed in zip(sample, encoded, strict=True):
            text, recorded = self._used[key][0], _unpack(self._used[key][1])
            distance = float(np.linalg.norm(recorded.vector - computed.vector))
            if not distance <= _NEAR or recorded.tokens != computed.tokens:
                start = " ".join(text.split())[:60]
                raise UserError(
                    f"the recorded vector of {start!r} is not the encoder's (distance {distance:.3g}), so it may tell "
                    "more than the text",
                    "use another recording, or delete the vectors.sqlite of a folder of your own, which are made again",
                )
            self.check.passed.add(key)
        logger.info("%s", self.check)

    async def __aexit__(self, *_: object) -> None:
        await self._in_flight.close()
        self._threads.shutdown(cancel_futures=True)

    def _compute(self, key: bytes, text: str) -> Encoded:
        cached = hashlib.sha256(f"{self.encoder.identity}\0{text}".encode()).digest()
        if (content := self._cache.get("embeddings", cached)) is None:
            encoded = self.encoder.encode(text)
            content = encoded.tokens.to_bytes(4, "little") + encoded.vector.astype("<f4").tobytes()
            self._cache.put("embeddings", cached, content)
        self._recorded.put("embeddings", key, content)
        return _unpack(content)


def _unpack(content: bytes) -> Encoded:
    return Encoded(np.frombuffer(content[4:], dtype="<f4"), int.from_bytes(content[:4], "little"))


def merge_vectors(recorded: Iterable[Path], to: Path) -> int:
    """Merge the vector files of several cells into one, sorted by key, without duplicates. Return their number."""
    with closing(connect(to, writes=True)) as database:
        database.execute("CREATE TEMP TABLE found (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        for path in recorded:
            with closing(connect(path, writes=False)) as cell:
                rows = cell.execute("SELECT key, value FROM embeddings")
                database.executemany("INSERT OR IGNORE INTO found VALUES (?, ?)", rows)
        database.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        return database.execute("INSERT INTO embeddings SELECT key, value FROM found ORDER BY key").rowcount


if __name__ == "__main__":
    _export_graph(*sys.argv[1:])

"""The frozen sentence encoder: a text in, a unit vector out, the same bytes in whatever company it is encoded.

The model reads the head of a long text only (D-GEN-3); how long the whole text was is reported with its vector.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from harness.errors import UserError
from harness.files import ROOT, Declaration, Sha256, read

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DECLARATION = ROOT / "config" / "encoder.yaml"
CPU_INFO = Path("/proc/cpuinfo")
# What torch takes from ATEN_CPU_CAPABILITY; anything else it ignores.
CAPABILITIES = ("default", "avx2", "avx512")
_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"
# Without modules.json the library would leave out the normalisation without an error.
_FILES = (_WEIGHTS, "config.json", _TOKENIZER, "modules.json")


class Declared(Declaration):
    """What ``config/encoder.yaml`` says of the encoder.

    Attributes:
        name: On the hub.
        source: A Python package whose ``get_model_path()`` names the folder of the files; or the folder, written with a
            slash.
        sha256: Of ``model.safetensors``.
        dimension: Length of a vector.
        max_tokens: Word pieces it reads, the two special ones included.
    """

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    source: Annotated[str, Field(pattern="^([A-Za-z_][A-Za-z0-9_.]*|.*/.*)$")]
    sha256: Sha256
    dimension: PositiveInt
    max_tokens: Annotated[int, Field(ge=3)]


class Encoded(NamedTuple):
    """A text as the encoder sees it.

    Attributes:
        vector: Shape (dimension,), of length 1.
        tokens: Word pieces of the whole text, special ones included; the vector stands for the first ``max_tokens``.
    """

    vector: NDArray[np.float32]
    tokens: int


class Encoder(Protocol):
    """What a cache of embeddings asks of an encoder.

    Attributes:
        dimension: Length of a vector.
        max_tokens: Word pieces it reads.
    """

    dimension: int
    max_tokens: int

    @property
    def identity(self) -> str:
        """What the bytes of a vector depend on besides the text, usable as the name of a folder."""

    def encode(self, text: str) -> Encoded:
        """The vector and the length of a text; may be called from several threads at once."""


class SentenceEncoder:
    """The encoder that ``config/encoder.yaml`` declares, on the CPU and in single precision.

    The model is loaded for the first text that has to be encoded: importing its library takes seconds, and a process
    that finds every text in a cache never pays them. A text is encoded by one thread (``harness.concurrency``); use
    several callers instead.

    Args:
        declaration: The file that declares it.

    Raises:
        UserError: The declaration is unreadable, or a field is missing, unknown or invalid.
    """

    def __init__(self, declaration: Path = DECLARATION) -> None:
        entry: Declared = read(declaration, Declared)
        self.name = entry.name
        self.dimension = entry.dimension
        self.max_tokens = entry.max_tokens
        self._declaration = declaration
        self._source = entry.source
        self._sha256 = entry.sha256
        self._loading = threading.Lock()
        self._tokenising = threading.Lock()
        self._model: SentenceTransformer | None = None

    @functools.cached_property
    def identity(self) -> str:
        """Model, weights, precision, version of torch and vector instructions: equal ones make equal bytes."""
        torch = importlib.metadata.version("torch")
        return f"{self.name}-{self._sha256[:16]}-fp32-torch{torch}-{cpu_capability()}"

    def encode(self, text: str) -> Encoded:
        """The vector and the length of a text; may be called from several threads at once.

        Each text has a forward pass of its own without padding, so its neighbours cannot change its last digits.

        Raises:
            UserError: The files of the model are missing, broken, or not those declared.
        """
        import torch

        model = self._loaded()
        with self._tokenising:  # one fast tokenizer cannot serve two threads at once
            pieces = model.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        read = pieces if len(pieces) <= self.max_tokens else [*pieces[: self.max_tokens - 1], pieces[-1]]
        with torch.inference_mode():
            row = torch.tensor([read])
            vectors = model({"input_ids": row, "attention_mask": torch.ones_like(row)})["sentence_embedding"]
        return Encoded(vectors[0].numpy(), len(pieces))

    def _loaded(self) -> SentenceTransformer:
        with self._loading:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> SentenceTransformer:
        folder = self._verified_folder()
        with _quietly_offline():
            from sentence_transformers import SentenceTransformer

            try:
                model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            except (OSError, ValueError) as error:
                reason = " ".join(str(error).split())
                raise UserError(f"{folder} cannot be loaded ({reason}); restore the files of {self.name}") from error
        return model.float().eval()

    def _verified_folder(self) -> Path:
        folder = _folder(self._source, self.name, self._declaration)
        with (folder / _WEIGHTS).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self._sha256:
            raise UserError(
                f"{folder / _WEIGHTS} has sha256 {found[:16]}..., expected {self._sha256[:16]}...; these are other "
                f"weights: restore those of {self.name}, or correct `source` in {self._declaration}"
            )
        return folder


def tokenizer_file(declaration: Path = DECLARATION) -> Path:
    """The file of the declared encoder's tokenizer, ``tokenizer.json``.

    Raises:
        UserError: The declaration is invalid, or files of the model are missing.
    """
    entry: Declared = read(declaration, Declared)
    return _folder(entry.source, entry.name, declaration) / _TOKENIZER


def _folder(source: str, name: str, declaration: Path) -> Path:
    """Where the files of the model are, all of them present."""
    folder = Path(source).expanduser() if "/" in source else _package(source, declaration)
    absent = [file for file in _FILES if not (folder / file).is_file()]
    if absent:
        raise UserError(
            f"{folder} has no {absent[0]}; it needs all files of {name}: restore them, or correct `source` in "
            f"{declaration}"
        )
    return folder


def _package(source: str, declaration: Path) -> Path:
    try:
        return Path(importlib.import_module(source).get_model_path())
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"{declaration}: `source` {source!r} is not an installed package with model files "
            f"({error}); install it, or name a folder, written with a slash"
        ) from error


def cpu_capability() -> str:
    """The widest vector instructions torch uses here, such as ``avx2``; they decide the last digits of a vector.

    On Linux the rule of torch is applied to its environment variable and the processor's flags: importing torch takes
    seconds, and cells that embed nothing need this name too.
    """
    chosen = os.environ.get("ATEN_CPU_CAPABILITY")
    if chosen in CAPABILITIES:
        return chosen
    flags = _cpu_flags()
    if flags is None:
        import torch

        return "-".join(torch.backends.cpu.get_cpu_capability().lower().split())
    if {"avx512vl", "avx512bw", "avx512dq", "fma"} <= flags:
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else "default"


def _cpu_flags() -> set[str] | None:
    """Flags of an x86 processor; ``None`` where there is no such list."""
    if not CPU_INFO.exists():
        return None
    lines = (line.partition(":") for line in CPU_INFO.read_text(errors="replace").splitlines())
    return next((set(flags.split()) for key, _, flags in lines if key.strip() == "flags"), None)


@contextmanager
def _quietly_offline() -> Iterator[None]:
    """No request to the hub, no progress bar and no advice while the model is loaded."""
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _silent("transformers"), _silent("sentence_transformers"), _no_progress_bar():
                yield
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


@contextmanager
def _silent(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    from transformers.utils import logging as progress

    shown = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            progress.enable_progress_bar()

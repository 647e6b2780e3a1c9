"""An encoder without a model: unit vectors from a hash of the text."""

import hashlib
import threading

import numpy as np

from harness.llm.encoder import EMBEDDING, Encoded, SentenceEncoder


class FakeEncoder(SentenceEncoder):
    """Stands where a SentenceEncoder does and counts its work; words stand for word pieces."""

    identity = "fake-encoder"  # type: ignore[assignment]
    weights = "fake"

    def __init__(self, max_tokens: int = 256) -> None:
        self.max_tokens = max_tokens
        self.encoded: list[str] = []
        self._counting = threading.Lock()

    def encode(self, text: str) -> Encoded:
        with self._counting:
            self.encoded.append(text)
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        draws = np.random.default_rng(seed).standard_normal(EMBEDDING)
        return Encoded((draws / np.linalg.norm(draws)).astype(np.float32), len(text.split()) + 2)

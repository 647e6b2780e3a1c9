"""An encoder without a model: unit vectors from a hash of the text."""

import threading

from harness.llm.encoder import Encoded, SentenceEncoder
from harness.scripted import vector


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
        return Encoded(vector(text), len(text.split()) + 2)

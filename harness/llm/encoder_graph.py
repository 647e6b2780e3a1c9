"""Export of the sentence encoder as ONNX, in its own process: importing sentence-transformers takes ten seconds."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

OPSET = 17


def export(model: Path) -> bytes:
    """Export a model as a graph from word pieces, shape (1, n), to a unit vector, shape (1, dimension)."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from sentence_transformers import SentenceTransformer

    # "eager" writes the attention out in matrix products, without the special cases of torch's own operator.
    attention = {"attn_implementation": "eager"}
    encoder = SentenceTransformer(str(model), device="cpu", local_files_only=True, model_kwargs=attention)

    class Pieces(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder.float().eval()

        def forward(self, pieces: torch.Tensor) -> torch.Tensor:
            read = {"input_ids": pieces, "attention_mask": torch.ones_like(pieces)}
            return self.encoder(read)["sentence_embedding"]

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file, torch.no_grad():
        torch.onnx.export(
            Pieces(),
            (torch.arange(10)[None],),
            file.name,
            input_names=["pieces"],
            output_names=["vector"],
            dynamic_axes={"pieces": {1: "length"}},
            opset_version=OPSET,
            dynamo=False,  # the other exporter needs onnxscript
        )
        return Path(file.name).read_bytes()


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        exported = export(Path(sys.argv[1]))
    sys.stdout.buffer.write(exported)

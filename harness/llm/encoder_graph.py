"""Export the sentence encoder to ONNX. A separate process, since importing sentence-transformers takes ten seconds."""

import os
import sys

OPSET = 17


def export(model: str, graph: str) -> None:
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
            opset_version=OPSET,
            dynamo=False,  # the dynamo exporter needs onnxscript
        )


if __name__ == "__main__":
    export(*sys.argv[1:])

"""A language model of random weights, small enough for any processor: a server of it is real, what it says is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from harness.files import ROOT, write_atomically

_VOCABULARY = 512
_HIDDEN = 64
_INNER = 128
_HEADS = 2
_LAYERS = 2
_WINDOW = 32768
# The trainer numbers them in this order, from 0.
_SPECIAL = _BEGIN, _END = ("<s>", "</s>")
# Times the other rows of the output layer: the end then comes after some dozen tokens, and now and then not at all.
_END_LOUDNESS = 1.6
_SPREAD = 0.5
_TEXT = ROOT / "harness" / "roles" / "catalogue.yaml"
_TEMPLATE = "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}[assistant] "


def make(folder: Path) -> None:
    """Write the model as the hub would hold it: configuration, weights, tokenizer and chat template.

    The same files on every machine. Nothing is written where they are already.

    Raises:
        UserError: The folder cannot be written.
    """
    if (folder / "model.safetensors").exists():
        return
    tokenizer = _tokenizer()
    write_atomically(folder / "config.json", json.dumps(_CONFIG, indent=2))
    write_atomically(folder / "tokenizer.json", tokenizer.to_str(pretty=True))
    write_atomically(folder / "tokenizer_config.json", json.dumps(_TOKENIZER_CONFIG, indent=2))
    write_atomically(folder / "chat_template.jinja", _TEMPLATE)
    write_atomically(folder / "model.safetensors", save(dict(_weights()), metadata={"format": "pt"}))


_TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": _BEGIN,
    "eos_token": _END,
    "model_max_length": _WINDOW,
    "clean_up_tokenization_spaces": False,
}


_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": _VOCABULARY,
    "hidden_size": _HIDDEN,
    "intermediate_size": _INNER,
    "num_attention_heads": _HEADS,
    "num_key_value_heads": _HEADS,
    "num_hidden_layers": _LAYERS,
    "max_position_embeddings": _WINDOW,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": _SPECIAL.index(_BEGIN),
    "eos_token_id": _SPECIAL.index(_END),
    "torch_dtype": "float32",
}


def _tokenizer() -> Tokenizer:
    """Pairs of bytes, learned from the texts of the roles."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXT.read_text(encoding="utf-8").splitlines(), trainer)
    return tokenizer


def _weights() -> Mapping[str, np.ndarray]:
    random = np.random.default_rng(0)

    def drawn(rows: int, columns: int) -> np.ndarray:
        return (_SPREAD * random.standard_normal((rows, columns))).astype(np.float32)

    weights = {"model.embed_tokens.weight": drawn(_VOCABULARY, _HIDDEN), "lm_head.weight": drawn(_VOCABULARY, _HIDDEN)}
    weights["lm_head.weight"][_SPECIAL.index(_END)] *= _END_LOUDNESS
    for layer in range(_LAYERS):
        name = f"model.layers.{layer}."
        weights |= {f"{name}self_attn.{part}_proj.weight": drawn(_HIDDEN, _HIDDEN) for part in "qkvo"}
        weights |= {f"{name}mlp.{part}_proj.weight": drawn(_INNER, _HIDDEN) for part in ("gate", "up")}
        weights[f"{name}mlp.down_proj.weight"] = drawn(_HIDDEN, _INNER)
        weights |= {f"{name}{part}_layernorm.weight": _ones() for part in ("input", "post_attention")}
    weights["model.norm.weight"] = _ones()
    return weights


def _ones() -> np.ndarray:
    return np.ones(_HIDDEN, dtype=np.float32)

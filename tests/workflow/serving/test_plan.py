"""What fits on GPUs, and the command lines, against numbers computed here from the models' shapes."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness import config
from harness.errors import UserError
from harness.llm.endpoints import load
from workflow.commands.serving import serve
from workflow.serving import deployment, launching, memory, text
from workflow.serving.deployment import Deployment

# Hidden size, size of the inner layer, heads, layers, vocabulary, whether input and output share it, biases of q, k, v.
SHAPES = {
    "llama-3.2-3B": (3072, 8192, 24, 28, 128256, True, False),
    "llama-3.1-8B": (4096, 14336, 32, 32, 128256, False, False),
    "mistral-nemo-12B": (5120, 14336, 32, 40, 131072, False, False),
    "qwen-2.5-14B": (5120, 13824, 40, 48, 152064, False, True),
    "qwen-2.5-32B": (5120, 27648, 40, 64, 152064, False, True),
}
KV_HEADS, HEAD = 8, 128


@pytest.mark.parametrize("key", list(SHAPES))
def test_the_declared_architectures_have_the_parameters_of_their_shapes(key: str) -> None:
    hidden, inner, heads, layers, vocabulary, shared, biased = SHAPES[key]
    attention = 2 * hidden * heads * HEAD + 2 * hidden * KV_HEADS * HEAD
    biases = (heads + 2 * KV_HEADS) * HEAD if biased else 0
    embeddings = hidden * vocabulary * (1 if shared else 2)
    found = memory.architectures()[key]
    assert found.at_16_bits == embeddings
    assert found.parameters == layers * (attention + biases + 3 * hidden * inner + 2 * hidden) + hidden + embeddings
    assert (found.layers, found.heads, found.kv_heads, found.head_size) == (layers, heads, KV_HEADS, HEAD)


def test_memory_of_weights_and_cache() -> None:
    found = memory.architectures()["llama-3.1-8B"]
    assert found.weights_gib(16) == pytest.approx(8030261248 * 2 / 1024**3)
    # What the files of the quantised repository take: 5.73e9 bytes.
    assert found.weights_gib(4.16) * 1024**3 == pytest.approx(5.73e9, rel=0.005)
    assert found.cache_gib == 128 / 1024**2


def fill(name: str, memory_gib: float | None = None) -> tuple[Deployment, list[memory.Share]]:
    found = deployment.read(name)
    assert found.gpus is not None
    gpus = found.gpus if memory_gib is None else replace(found.gpus, memory_gib=memory_gib)
    found = replace(found, gpus=gpus)
    return found, memory.shares(found, gpus)


@pytest.mark.parametrize("name", ["one-gpu", "eight-gpus"])
def test_the_shipped_deployments_fit_and_serve_what_a_preset_asks(name: str) -> None:
    found, shares = fill(name)
    assert all(share.fits for share in shares)
    preset = config.preset("paper_4bit" if found.weights else "paper")
    assert preset.weights == found.weights
    assert set(found.endpoints()) == set(preset.backbones)


@settings(max_examples=60, deadline=None)
@given(memory_gib=st.floats(5, 400), name=st.sampled_from(["one-gpu", "eight-gpus"]))
def test_servers_never_get_more_than_their_gpus_have(memory_gib: float, name: str) -> None:
    found, shares = fill(name, memory_gib)
    assert found.gpus is not None
    if not all(share.fits for share in shares):
        return
    for gpu in range(found.gpus.count):
        there = [share for share in shares if gpu in share.server.gpus]
        assert sum(share.fraction for share in there) <= found.gpus.usable + 1e-9
        for share in there:
            kept = (
                share.fraction * memory_gib * len(share.server.gpus) - len(share.server.gpus) * found.gpus.reserve_gib
            )
            assert kept == pytest.approx(share.weights_gib + share.tokens * share.cache_gib_a_token)


def test_servers_on_one_gpu_hold_equally_many_tokens() -> None:
    _, shares = fill("one-gpu")
    assert len({share.tokens for share in shares}) == 1
    _, shares = fill("eight-gpus")
    by_gpu = {share.server.name: share.tokens for share in shares}
    assert by_gpu["llama-3.2-3B-1"] == by_gpu["mistral-nemo-12B-1"] == by_gpu["mistral-nemo-12B-2"]
    assert by_gpu["qwen-2.5-32B-1"] > by_gpu["qwen-2.5-14B-1"] > by_gpu["llama-3.2-3B-1"]


@settings(max_examples=20, deadline=None)
@given(memory_gib=st.floats(20, 90))
def test_groups_fit_and_leave_no_backbone_out(memory_gib: float) -> None:
    found, shares = fill("one-gpu", memory_gib)
    assert found.gpus is not None
    together = memory.groups(found, found.gpus)
    if together is None:
        return
    assert sorted(key for group in together for key in group) == sorted(SHAPES)
    for group in together:
        assert all(share.fits for share in memory.shares(found.only(group), found.gpus))
    assert (len(together) == 1) == all(share.fits for share in shares)


def test_a_plan_that_does_not_fit_says_so_and_ends_with_status_2() -> None:
    small = CliRunner().invoke(serve, ["plan", "--gpu-memory", "47.5"])
    assert small.exit_code == 2
    assert "Does not fit: llama-3.2-3B, llama-3.1-8B" in small.output
    assert "--backbone qwen-2.5-32B --backbone qwen-2.5-14B --backbone llama-3.1-8B" in small.output
    assert "Command lines" not in small.output
    group = ["--backbone", "mistral-nemo-12B", "--backbone", "llama-3.2-3B"]
    assert CliRunner().invoke(serve, ["plan", "--gpu-memory", "47.5", *group]).exit_code == 0
    tiny = CliRunner().invoke(serve, ["plan", "--gpu-memory", "23.6"])
    assert tiny.exit_code == 2
    # 23.6 GiB x 0.94, less 2.5 and the weights, at 256 KiB a token.
    assert "qwen-2.5-32B fits alone with max_model_len at most 6842" in tiny.output


def test_an_attention_that_cannot_be_split_is_told() -> None:
    found, _ = fill("eight-gpus")
    assert found.gpus is not None
    odd = replace(found, servers=tuple(replace(one, gpus=(0, 1, 2)) for one in found.servers[:1]))
    shown, fits = text.plan(odd, found.gpus)
    assert fits  # 24 heads over 3 GPUs
    odd = replace(found, servers=tuple(replace(one, gpus=(0, 1, 2)) for one in found.servers[1:2]))
    shown, fits = text.plan(odd, found.gpus)
    assert not fits
    assert "The attention of llama-3.1-8B-1 cannot be split over 3 GPUs evenly" in shown


def test_a_command_line_has_every_setting() -> None:
    found, shares = fill("eight-gpus")
    server, share = found.servers[4], shares[4]
    words = launching.arguments(found, server, share)
    said = dict(zip(words[1::2], words[2::2], strict=False))
    assert words[0] == "Qwen/Qwen2.5-32B-Instruct"
    pairs = {
        "--served-model-name": "Qwen/Qwen2.5-32B-Instruct",
        "--port": "8005",
        "--max-model-len": "16384",
        "--generation-config": "vllm",
        "--seed": "0",
        "--dtype": "bfloat16",
    }
    assert {key: said[key] for key in pairs} == pairs
    assert {"--enable-prefix-caching", "--no-enforce-eager"} <= set(words)
    assert words[words.index("--tensor-parallel-size") + 1] == "2"
    fraction = float(words[words.index("--gpu-memory-utilization") + 1])
    assert 0 <= fraction - share.fraction < 1e-4
    assert launching.environment(found, server)["CUDA_VISIBLE_DEVICES"] == "0,1"
    pinned = launching.arguments(found, replace(server, revision="abc"), share)
    assert [pinned[pinned.index(flag) + 1] for flag in ("--revision", "--tokenizer-revision")] == ["abc", "abc"]


def test_the_printed_lines_are_the_ones_that_are_run_and_the_entries_are_read(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found, shares = fill("eight-gpus")
    shown, _ = text.plan(found, found.gpus)
    lines = shown.split("Command lines:\n")[1].split("\n\n")[0].splitlines()
    for server, share, line in zip(found.servers, shares, lines, strict=True):
        words = shlex.split(line)
        assert words[words.index("serve") + 1 :] == launching.arguments(found, server, share)
    path = tmp_path_factory.mktemp("entries") / "endpoints.yaml"
    path.write_text(shown.split("Entries of config/endpoints.yaml:\n")[1])
    entries = load(path, SHAPES)
    assert entries["llama-3.2-3B"].urls == ("http://127.0.0.1:8001/v1", "http://127.0.0.1:8006/v1")
    assert {endpoint.max_in_flight for endpoint in entries.values()} == {256}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers": [{"backbones": ["gpt-9"], "gpus": [0]}]}, "unknown backbone 'gpt-9'"),
        ({"servers": [{"backbones": ["llama-3.2-3B"], "gpus": [1]}]}, "server 1 is on GPU 1, but there are 1, counted"),
        ({"servers": [{"backbones": ["llama-3.2-3B"]}]}, "give every server its gpus"),
        ({"servers": [{"backbones": ["llama-3.2-3B", "llama-3.1-8B"], "gpus": [0]}]}, "names several backbones"),
        ({"weights": "gptq"}, "unknown weight set 'gptq'"),
        ({"engines": {}}, "did you mean 'engine'?"),
        ({"engine": {"max_model_len": 4096}}, "is a required property"),
    ],
)
def test_a_slip_in_a_deployment_is_one_line(
    change: dict[str, object], message: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("serving")
    entry = yaml.safe_load((deployment.FOLDER / "one-gpu.yaml").read_text())
    (folder / "mine.yaml").write_text(yaml.safe_dump({**entry, **change}))
    monkeypatch.setattr(deployment, "FOLDER", folder)
    with pytest.raises(UserError) as caught:
        deployment.read("mine")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_deployment_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown deployment 'one-gpus'; did you mean 'one-gpu'"):
        deployment.read("one-gpus")

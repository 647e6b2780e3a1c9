"""A folder to work in, and a program in the place of vLLM."""

import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from workflow.serving import deployment, processes
from workflow.serving.text import known

FAKE = Path(__file__).with_name("fake_vllm.py")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Deployments ``tiny``, on one port, and ``pair``, two servers on one GPU; whatever was started is ended."""
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    engine = {"dtype": "auto", "max_model_len": 64, "max_num_seqs": 8, "seed": 0, "generation_config": "vllm"}
    common = {"description": "for tests", "host": "127.0.0.1", "engine": engine, "environment": {}}
    tiny = {**common, "weights": "random", "first_port": free_port(), "servers": [{"backbones": ["llama-3.2-3B"]}]}
    gpus = {"count": 1, "memory_gib": 80, "usable": 0.9, "reserve_gib": 1}
    servers = [{"backbones": [key], "gpus": [0]} for key in ("llama-3.2-3B", "llama-3.1-8B")]
    pair = {**common, "weights": "awq", "first_port": free_port(), "gpus": gpus, "servers": servers}
    folder = tmp_path / "serving"
    folder.mkdir()
    for name, entry in {"tiny": tiny, "pair": pair}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(entry))
    monkeypatch.setattr(deployment, "FOLDER", folder)
    program = tmp_path / "vllm"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("GMR_VLLM", str(program))
    monkeypatch.setenv("FAKE_FOLDER", str(tmp_path))
    yield tmp_path
    for name in ("tiny", "pair"):
        for process in known(deployment.folder_of(name)).values():
            processes.stop(process, patience_s=1)

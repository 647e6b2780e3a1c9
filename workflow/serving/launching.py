"""The command lines of servers, and the vLLM that they start."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import UserError
from workflow.serving.deployment import Deployment, Server, Setting
from workflow.serving.memory import Share

VLLM = "GMR_VLLM"
_MODULE = ("-m", "vllm.entrypoints.openai.api_server", "--model")


def vllm() -> list[str]:
    """What starts a server of the model that is named next.

    ``GMR_VLLM`` names a Python with vLLM in it, or its command ``vllm``; without, that is looked for on the path.

    Raises:
        UserError: There is none.
    """
    given = os.environ.get(VLLM)
    found = shutil.which(given or "vllm")
    if found is None:
        where = f"{VLLM} names {given}, which is no program" if given else "no vLLM here"
        raise UserError(
            f"{where}; install it into an environment of its own (python3 -m venv ../vllm && ../vllm/bin/pip install "
            f"vllm) and set {VLLM}=../vllm/bin/python"
        )
    return [found, *_MODULE] if Path(found).name.startswith("python") else [found, "serve"]


def arguments(deployment: Deployment, server: Server, share: Share | None) -> list[str]:
    """What follows the command that starts a server: the model, then every setting.

    Args:
        deployment: Which.
        server: Of it.
        share: What it gets of its GPUs; ``None`` on a processor.
    """
    settings: dict[str, Setting] = dict(deployment.engine)
    if server.revision is not None:
        settings |= {"revision": server.revision, "tokenizer_revision": server.revision}
    if share is not None:
        settings["tensor_parallel_size"] = len(server.gpus)
        # Rounded up: rounded down, the cache may miss the few tokens that one full sequence still needs.
        settings["gpu_memory_utilization"] = math.ceil(share.fraction * 1e4) / 1e4
    words = [server.model, "--served-model-name", *server.models, "--host", deployment.host, "--port", str(server.port)]
    return [*words, *(word for name, value in settings.items() for word in _option(name, value))]


def _option(name: str, value: Setting) -> Sequence[str]:
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    return [f"--{option}", str(value)]


def environment(deployment: Deployment, server: Server) -> dict[str, str]:
    """The variables that a server is started with, beside those there are."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, server.gpus))} if server.gpus else {}
    return {**deployment.environment, **visible}


def started_with(variables: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a server."""
    return {**os.environ, **variables}

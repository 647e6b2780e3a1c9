"""Why a server died, from the last lines of its log, and what usually helps."""

from __future__ import annotations

import re
from pathlib import Path

_LINES = 12
_LONGEST = 240
_READ = 64 * 1024
# The first that is found counts: what comes first causes what comes later.
_CURES = {
    r"GatedRepoError|gated repo|awaiting a review|401 Client Error|403 Client Error": (
        "the model is gated: accept its licence on the hub, and give your token (HF_TOKEN, or `hf auth login`)"
    ),
    r"RepositoryNotFound|RevisionNotFound|LocalEntryNotFound|OfflineModeIsEnabled|offline mode is enabled|not a valid "
    r"model identifier|couldn't connect to|does not appear to have a file named": (
        "the weights are not here and cannot be fetched: `hf download MODEL` where there is a network, with the same "
        "HF_HOME, or correct model and revision in config/"
    ),
    r"No space left on device": "the disk is full: weights lie below HF_HOME (~/.cache/huggingface)",
    r"Free memory on device .* is less than": (
        "another program holds memory of this GPU (nvidia-smi): end it, or plan with less (--gpu-memory)"
    ),
    r"No available memory for the cache blocks|KV cache is needed|larger than the maximum number of tokens": (
        "too little memory is left for the cache: a smaller max_model_len, or fewer servers on this GPU"
    ),
    r"out of memory|OutOfMemoryError|Cannot allocate memory": (
        "out of memory: a larger reserve_gib, a smaller max_num_batched_tokens, or fewer servers on this GPU"
    ),
    r"[Aa]ddress already in use": "another program listens on this port: end it, or change first_port",
    r"unrecognized arguments|invalid choice|error: argument": (
        "this vLLM does not know a setting: correct engine in config/serving/, or install another version"
    ),
    r"No module named '?vllm": "there is no vLLM in this Python: set GMR_VLLM to one that has it",
    r"compute capability|no kernel image|not supported on this GPU|is not supported for quantization": (
        "this GPU is too old for such weights or numbers: dtype: float16, or other weights"
    ),
    r"NVML|CUDA driver|No CUDA GPUs|Failed to infer device type": "no GPU is seen: does `nvidia-smi` show it?",
}


def last_lines(log: Path, number: int = _LINES) -> list[str]:
    """The last lines of a log that are not empty, each at most 240 characters."""
    lines = [line.strip() for line in _end(log).splitlines()]
    return [line[:_LONGEST] for line in lines if line][-number:]


def cure(log: Path) -> str | None:
    """What usually helps against what a log ends with; ``None`` where nothing is known."""
    text = _end(log)
    return next((advice for pattern, advice in _CURES.items() if re.search(pattern, text)), None)


def _end(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _READ))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""

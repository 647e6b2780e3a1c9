"""A trained router, found among the finished cells and rebuilt from its checkpoint alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gmr.method import GMR
from harness.benchmarks import benchmark as find_benchmark
from harness.errors import UserError, unknown
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones
from harness.llm.encoder import SentenceEncoder
from harness.runner import config, layout
from harness.runner.config import POOL, Cell, Preset
from harness.runner.method import Setting, build
from harness.training.loop import CHECKPOINT, checkpoint

_MODULE = "gmr"
_OF_THE_CELL = {"method", "module", "config", "preset", "benchmark", "backbone", "seed", "training_seed", "simulated"}
_FACTS = _OF_THE_CELL | {"epoch", "encoder", "roles", "backbones"}


@dataclass(frozen=True, slots=True)
class Restored:
    """A router rebuilt from its checkpoint, and what the checkpoint says of it."""

    path: Path
    facts: Mapping[str, Any]
    setting: Setting
    router: GMR


def find(preset: Preset, method: str, benchmark: str | None, seed: int) -> Path:
    """The checkpoint of a finished cell.

    Args:
        preset: Whose cell.
        method: Key of GMR or of a variant of it.
        benchmark: Key of the benchmark; ``None`` takes the only trained one there is.
        seed: Training seed.

    Raises:
        UserError: There is none, or more than one to choose from; the message names the command that makes it, or the
            choices.
    """
    entries = config.methods()
    if method not in entries:
        raise unknown("method", method, entries, "config/methods.yaml")
    if entries[method].module != _MODULE:
        raise UserError(
            f"{method} is neither gmr nor a variant of it, and only their routers are shown here; the decisions of "
            "every method are in decisions.parquet of its cells"
        )
    if benchmark is not None:
        config.check_benchmark(preset, benchmark)
    candidates = preset.benchmarks if benchmark is None else (benchmark,)
    there = [key for key in candidates if _checkpoint(preset, method, key, seed).exists()]
    if not there:
        raise _not_trained(preset, method, candidates, seed)
    if len(there) > 1:
        raise UserError(f"{method} of seed {seed} is trained on {', '.join(there)}; choose one with --benchmark")
    return _checkpoint(preset, method, there[0], seed)


def restore(path: Path, *, greedy: bool = False) -> Restored:
    """Rebuild a router from its checkpoint.

    Args:
        path: The file.
        greedy: Take the most probable choice everywhere, whatever the router's configuration says.

    Raises:
        UserError: It is no checkpoint of a router, or was trained with other roles, backbones, profiles or embeddings.
    """
    found = checkpoint.load(path)
    facts = found.facts
    if facts.get("module") != _MODULE or not facts.keys() >= _FACTS:
        holds = facts.get("method", "something else")
        raise UserError(f"{path} holds no router of Gated-Memory Routing but {holds}; name a checkpoint of gmr")
    _refuse_other_encoder(facts["encoder"])
    setting = _setting(facts)
    decode = {"decode": "greedy"} if greedy else {}
    router: GMR = build(facts["module"], setting, {**facts["config"], **decode})
    router.load(found)
    return Restored(path, facts, setting, router)


def _checkpoint(preset: Preset, method: str, benchmark: str, seed: int) -> Path:
    return layout.cell(preset.name, Cell(method, benchmark, POOL, seed)) / CHECKPOINT


def _not_trained(preset: Preset, method: str, benchmarks: tuple[str, ...], seed: int) -> UserError:
    where = f"on {benchmarks[0]}" if len(benchmarks) == 1 else f"on any of {', '.join(benchmarks)}"
    path = _checkpoint(preset, method, benchmarks[0], seed)
    return UserError(
        f"preset {preset.name} has no trained {method} of seed {seed} {where}; train one with "
        f"`snakemake --cores all {path}{_besides(preset, method, seed)}`"
    )


def _besides(preset: Preset, method: str, seed: int) -> str:
    """What Snakemake has to be told of a cell that is not in the preset as it stands."""
    keys = [] if method in preset.methods else [f"methods='[{method}]'"]
    keys += [] if seed in preset.seeds else [f"seeds='[{seed}]'"]
    return f" --config {' '.join(keys)}" if keys else ""


def _setting(facts: Mapping[str, Any]) -> Setting:
    declared = load_backbones(ROOT / "config" / "backbones.yaml")
    keys = [key for key, _ in facts["backbones"]]
    for key in keys:
        if key not in declared:
            raise UserError(
                f"the router was trained with the backbone {key!r}, which config/backbones.yaml no longer has; restore "
                "its entry, or train again"
            )
    return Setting(
        backbone=facts["backbone"],
        pool={key: declared[key] for key in keys},
        benchmark=facts["benchmark"],
        domain=find_benchmark(facts["benchmark"]).role_domain,
        seed=facts["training_seed"],
        max_epochs=None,
    )


def _refuse_other_encoder(trained: str) -> None:
    """Refuse other weights; between builds of torch and processors only the last digits of a vector differ."""
    now = SentenceEncoder().identity
    if _weights(trained) != _weights(now):
        raise UserError(
            f"the router was trained with embeddings of {_weights(trained)}, config/encoder.yaml declares "
            f"{_weights(now)}; restore that file, or train again"
        )


def _weights(identity: str) -> str:
    return identity.partition("-torch")[0]

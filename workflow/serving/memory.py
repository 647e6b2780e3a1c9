"""What fits: weights, cache and the fraction of a GPU's memory that each server is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.backbones import load_weights
from harness.files import ROOT
from harness.yaml_files import read_yaml
from workflow.serving.deployment import Deployment, Gpus, Server

GIB = 1024**3
_ORIGINAL_BITS = 16.0
_COUNT = {"type": "integer", "minimum": 1}
_FIELDS = ("parameters", "at_16_bits", "layers", "heads", "kv_heads", "head_size")
_SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": dict.fromkeys(_FIELDS, _COUNT),
        "required": list(_FIELDS),
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a backbone's memory follows from; fields as in ``config/architectures.yaml``."""

    parameters: int
    at_16_bits: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int

    def weights_gib(self, bits: float) -> float:
        """Memory of the weights, stored with so many bits each but for embeddings and output layer."""
        stored = (self.parameters - self.at_16_bits) * bits + self.at_16_bits * _ORIGINAL_BITS
        return stored / 8 / GIB

    @property
    def cache_gib(self) -> float:
        """Memory of one token in the cache, keys and values of 16 bits."""
        return 2 * self.layers * self.kv_heads * self.head_size * 2 / GIB


@dataclass(frozen=True, slots=True)
class Share:
    """What a server gets.

    Attributes:
        server: Which.
        weights_gib: Its weights, over all its GPUs.
        cache_gib_a_token: Of its cache, over all its GPUs.
        tokens: That its cache holds; 0 where not even the weights find room.
        fraction: Of the memory of each of its GPUs.
        window: The longest prompt and reply together.
        splits: Whether its attention can be split over its GPUs.
    """

    server: Server
    weights_gib: float
    cache_gib_a_token: float
    tokens: int
    fraction: float
    window: int
    splits: bool

    @property
    def fits(self) -> bool:
        """Whether it can start: the cache has to hold one sequence of full length."""
        return self.splits and self.tokens >= self.window

    def sequences(self, length: int) -> int:
        """How many sequences of a length its cache holds at once."""
        return self.tokens // length


def architectures() -> dict[str, Architecture]:
    """What is known of each backbone.

    Raises:
        UserError: ``config/architectures.yaml`` has a slip.
    """
    entries = read_yaml(ROOT / "config" / "architectures.yaml", _SCHEMA)
    return {key: Architecture(**fields) for key, fields in entries.items()}


def shares(deployment: Deployment, gpus: Gpus) -> list[Share]:
    """What each server of a deployment gets of its GPUs.

    The memory that weights and reserves leave is cache. Servers that share a GPU get cache for equally many tokens; one
    on several GPUs gets what the fullest of them allows.

    Raises:
        UserError: A file has a slip.
    """
    known = architectures()
    bits = load_weights(ROOT / "config" / "weights.yaml", deployment.weights).bits if deployment.weights else None
    facts = {server.name: known[server.backbones[0]] for server in deployment.servers}
    weights = {name: fact.weights_gib(bits or _ORIGINAL_BITS) for name, fact in facts.items()}
    tokens = _tokens(deployment.servers, gpus, weights, {name: fact.cache_gib for name, fact in facts.items()})
    found = []
    for server in deployment.servers:
        fact, parts = facts[server.name], len(server.gpus)
        room = min(tokens[gpu] for gpu in server.gpus)
        taken = (weights[server.name] + room * fact.cache_gib) / parts + gpus.reserve_gib
        found.append(
            Share(
                server=server,
                weights_gib=weights[server.name],
                cache_gib_a_token=fact.cache_gib,
                tokens=room,
                fraction=taken / gpus.memory_gib,
                window=deployment.window,
                splits=fact.heads % parts == 0,
            )
        )
    return found


def _tokens(
    servers: Sequence[Server], gpus: Gpus, weights: Mapping[str, float], cache: Mapping[str, float]
) -> dict[int, int]:
    """Tokens for which each server on a GPU gets cache there."""
    found = {}
    for gpu in range(gpus.count):
        there = [server for server in servers if gpu in server.gpus]
        taken = sum(weights[one.name] / len(one.gpus) + gpus.reserve_gib for one in there)
        a_token = sum(cache[one.name] / len(one.gpus) for one in there)
        left = gpus.memory_gib * gpus.usable - taken
        found[gpu] = max(0, int(left / a_token)) if there else 0
    return found


def groups(deployment: Deployment, gpus: Gpus) -> list[list[str]] | None:
    """Backbones that fit side by side, for a deployment of which all together do not; ``None`` where one fits nowhere.

    The largest come first, and each joins the first group that still fits with it.
    """
    known = architectures()
    keys = dict.fromkeys(key for server in deployment.servers for key in server.backbones)
    found: list[list[str]] = []
    for key in sorted(keys, key=lambda one: -known[one].parameters):
        for group in found:
            if _fit(deployment, gpus, [*group, key]):
                group.append(key)
                break
        else:
            if not _fit(deployment, gpus, [key]):
                return None
            found.append([key])
    return found


def _fit(deployment: Deployment, gpus: Gpus, keys: Sequence[str]) -> bool:
    return all(share.fits for share in shares(deployment.only(keys), gpus))

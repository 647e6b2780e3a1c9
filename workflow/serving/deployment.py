"""A deployment: which servers run where and with which settings, from ``config/serving/NAME.yaml``."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness import layout
from harness.backbones import Backbone, load
from harness.errors import UserError, unknown
from harness.files import ROOT
from harness.yaml_files import read_yaml

FOLDER = ROOT / "config" / "serving"
RANDOM = "random"
_ANYWHERE = "0.0.0.0"  # noqa: S104 - a value to compare with
Setting = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of a machine, all alike.

    Attributes:
        count: How many.
        memory_gib: Memory of each, as its driver reports it.
        usable: Share of the memory that the servers on a GPU may take together.
        reserve_gib: What a server needs on each of its GPUs beside weights and cache: context, activations, graphs.
    """

    count: int
    memory_gib: float
    usable: float
    reserve_gib: float


@dataclass(frozen=True, slots=True)
class Server:
    """One server process.

    Attributes:
        name: What it is called among the servers of its deployment.
        backbones: Keys of what it serves: one, or several names for one model of random weights.
        gpus: Numbers of its GPUs, over which it splits its model; none on a processor.
        port: Where it listens.
        models: Names under which it serves.
        model: What it loads, a name on the hub or a folder.
        revision: Commit on the hub.
    """

    name: str
    backbones: tuple[str, ...]
    gpus: tuple[int, ...]
    port: int
    models: tuple[str, ...]
    model: str
    revision: str | None


@dataclass(frozen=True)
class Deployment:
    """Servers that run together."""

    name: str
    description: str
    weights: str | None
    host: str
    gpus: Gpus | None
    engine: Mapping[str, Setting]
    environment: Mapping[str, str]
    servers: tuple[Server, ...]

    @property
    def folder(self) -> Path:
        """Where pid files and logs lie."""
        return folder_of(self.name)

    @property
    def window(self) -> int:
        """The longest prompt and reply together, in tokens."""
        return int(self.engine["max_model_len"])

    def url(self, server: Server) -> str:
        """Where a server answers, as another machine would write it where it listens to others."""
        host = socket.gethostname() if self.host == _ANYWHERE else self.host
        return f"http://{host}:{server.port}/v1"

    def endpoints(self) -> dict[str, dict[str, object]]:
        """The entries of ``config/endpoints.yaml`` that match."""
        found: dict[str, list[str]] = {}
        for server in self.servers:
            for backbone in server.backbones:
                found.setdefault(backbone, []).append(self.url(server))
        return {
            key: {
                **({"urls": urls} if len(urls) > 1 else {"url": urls[0]}),
                "max_in_flight": self.engine["max_num_seqs"],
            }
            for key, urls in found.items()
        }

    def only(self, backbones: Sequence[str]) -> Deployment:
        """The same with the servers of some backbones alone, which then share what the others leave.

        Raises:
            UserError: It serves no such backbone.
        """
        known = [key for server in self.servers for key in server.backbones]
        for key in backbones:
            if key not in known:
                raise unknown("backbone", key, known, f"config/serving/{self.name}.yaml")
        return replace(self, servers=tuple(one for one in self.servers if set(one.backbones) & set(backbones)))


def folder_of(name: str) -> Path:
    """Where pid files and logs of a deployment lie."""
    return layout.RESULTS / "serving" / name


def names() -> list[str]:
    """The deployments there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


_SCALAR = {"type": ["string", "number", "boolean"]}
_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["description", "weights", "host", "first_port", "engine", "environment", "servers"],
    "properties": {
        "description": {"type": "string", "minLength": 1},
        "weights": {"type": ["string", "null"]},
        "host": {"type": "string", "pattern": r"\A\S+\Z"},
        "first_port": {"type": "integer", "minimum": 1, "maximum": 65000},
        "gpus": {
            "type": "object",
            "additionalProperties": False,
            "required": ["count", "memory_gib", "usable", "reserve_gib"],
            "properties": {
                "count": {"type": "integer", "minimum": 1},
                "memory_gib": {"type": "number", "exclusiveMinimum": 0},
                "usable": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "reserve_gib": {"type": "number", "minimum": 0},
            },
        },
        "engine": {
            "type": "object",
            "required": ["dtype", "max_model_len", "max_num_seqs", "seed", "generation_config"],
            "properties": {
                "max_model_len": {"type": "integer", "minimum": 1},
                "max_num_seqs": {"type": "integer", "minimum": 1},
            },
            "propertyNames": {"pattern": r"\A[a-z][a-z0-9_]*\Z"},
            "additionalProperties": _SCALAR,
        },
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "servers": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["backbones"],
                "properties": {
                    "backbones": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}},
                    "gpus": {
                        "type": "array",
                        "minItems": 1,
                        "uniqueItems": True,
                        "items": {"type": "integer", "minimum": 0},
                    },
                },
            },
        },
    },
}


def read(name: str) -> Deployment:
    """The deployment of a name.

    Raises:
        UserError: There is none, or its file has a slip.
    """
    if name not in names():
        raise unknown("deployment", name, names(), "config/serving/")
    path = FOLDER / f"{name}.yaml"
    entry = read_yaml(path, _SCHEMA)
    known = load(ROOT / "config" / "backbones.yaml", entry["weights"])
    gpus = Gpus(**entry["gpus"]) if "gpus" in entry else None
    declared = entry["servers"]
    every = [key for server in declared for key in server["backbones"]]
    servers, seen = [], dict.fromkeys(every, 0)
    for number, server in enumerate(declared):
        keys = server["backbones"]
        for key in keys:
            if key not in known:
                raise unknown(
                    "backbone", key, known, "config/backbones.yaml and, of other weights, config/weights.yaml"
                )
        _check_place(server, gpus, entry["weights"], f"{path}: server {number + 1}")
        seen[keys[0]] += 1
        several = f"-{seen[keys[0]]}" if every.count(keys[0]) > 1 else ""
        title = f"{keys[0]}{several}" if len(keys) == 1 else f"{keys[0]}+{len(keys) - 1}"
        servers.append(_server(title, server, entry["first_port"] + number, [known[key] for key in keys], name))
    return Deployment(
        name=name,
        description=entry["description"],
        weights=entry["weights"],
        host=entry["host"],
        gpus=gpus,
        engine=entry["engine"],
        environment=entry["environment"],
        servers=tuple(servers),
    )


def _server(title: str, entry: Mapping[str, Sequence[int]], port: int, served: Sequence[Backbone], name: str) -> Server:
    # Random weights are made here and lie in the deployment's own folder; vLLM takes what begins with / for a folder.
    is_random = served[0].model.startswith(f"{RANDOM}/")
    return Server(
        name=title,
        backbones=tuple(one.key for one in served),
        gpus=tuple(entry.get("gpus", ())),
        port=port,
        models=tuple(one.model for one in served),
        model=str((folder_of(name) / "model").absolute()) if is_random else served[0].model,
        revision=served[0].revision,
    )


def _check_place(server: Mapping[str, Sequence[int]], gpus: Gpus | None, weights: str | None, where: str) -> None:
    if len(server["backbones"]) > 1 and weights != RANDOM:
        raise UserError(f"{where} names several backbones; each has weights of its own, so give it a server of its own")
    if (gpus is None) != ("gpus" not in server):
        raise UserError(f"{where}: give every server its gpus and the deployment what they are, or neither")
    if gpus is not None and max(server["gpus"]) >= gpus.count:
        raise UserError(f"{where} is on GPU {max(server['gpus'])}, but there are {gpus.count}, counted from 0")

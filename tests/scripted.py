"""A client that answers from a script and records its requests, and a context that uses it."""

from types import SimpleNamespace
from typing import Any

from harness.agents.runtime import Context
from harness.agents.trajectory import TEST
from harness.benchmarks.items import Item
from harness.llm.backbones import Backbone, Generation
from harness.llm.request import Reply, Request, Sampling
from harness.runner.method import Setting


class ScriptedClient:
    """Stands where a ChatClient does; each call takes the next reply, the last one repeats."""

    def __init__(self, *replies: str | Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, Request]] = []

    async def complete(self, backbone: str, request: Request) -> Reply:
        self.asked.append((backbone, request))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply if isinstance(reply, Reply) else Reply(reply, 100, 10, "stop", request.model)


def sampling(request: Request) -> Sampling:
    return Sampling(*(getattr(request, name) for name in Sampling._fields))


def backbone(key: str, parameters_b: int = 1, model: str = "", **generation: float) -> Backbone:
    return Backbone(
        key=key,
        model=model or f"org/{key}",
        revision=None,
        parameters_b=parameters_b,
        context_length=4096,
        description=f"A {key} one.",
        generation=Generation.model_validate({"temperature": 1.0, **generation}),
    )


def backbones() -> dict[str, Backbone]:
    return {
        "small": backbone("small", 1, temperature=0.6, top_p=0.9),
        "large": backbone("large", 10, temperature=0.7, top_p=0.8, top_k=20, repetition_penalty=1.05),
    }


def context(item: Item, client: Any, rules: str = "", **equipment: Any) -> Context:
    """Return a context with the two backbones, and with code tools and embeddings where given.

    Texts are their own answers unless an extractor is given.
    """
    episode, extract = equipment.pop("episode", TEST), equipment.pop("extract", lambda item, text: text)
    bare = {"backbones": backbones(), "code_tools": None, "embeddings": None, "seed": 0, "greedy": False}
    benchmark = SimpleNamespace(output_rules=rules, extract=extract)
    runtime: Any = SimpleNamespace(**{"client": client, "benchmark": benchmark, **bare, **equipment})
    return Context(item, runtime, episode)


def setting(backbone: str = "small", **changes: Any) -> Setting:
    fields = {"pool": backbones(), "benchmark": "gsm_hard", "domain": "Math", "seed": 0, "max_epochs": None}
    return Setting(backbone=backbone, **{**fields, **changes})

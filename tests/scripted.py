"""A client that answers from a script and remembers what it was asked, and a context in front of it."""

from __future__ import annotations

from typing import Any

from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.llm.backbones import Backbone
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
    """How a request has its tokens drawn."""
    return Sampling(*(getattr(request, name) for name in Sampling._fields))


def backbones() -> dict[str, Backbone]:
    """Two backbones, one dear and one cheap."""
    return {
        "small": Backbone("small", "org/small", None, 1, 4096, "A small one.", Sampling(0.6, 0.9)),
        "large": Backbone("large", "org/large", None, 10, 4096, "A large one.", Sampling(0.7, 0.8, 20, 1.05)),
    }


def context(item: Item, client: Any, rules: str = "", **equipment: Any) -> Context:
    """A context with the two backbones; it has the code_tools and the embeddings it is given, or none.

    Texts are their own answers unless an extractor is given.
    """
    bare = {"code_tools": None, "embeddings": None, "extract": lambda item, text: text}
    return Context(item, client, backbones(), rules, **{**bare, **equipment})


def setting(backbone: str = "small", **changes: Any) -> Setting:
    """Where a method works in a test: one of the two backbones, or the pool of both."""
    fields = {"pool": backbones(), "benchmark": "gsm_hard", "domain": "Math", "seed": 0, "max_epochs": None}
    return Setting(backbone=backbone, **{**fields, **changes})

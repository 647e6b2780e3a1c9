"""Backbones for commands that need no model."""

from harness.llm.request import Reply, Request, Served

REPLY = "Added up, they are twelve.\nThe answer is 12"


class Backbones:
    """Simulated backbones that say the same to everybody."""

    def __init__(self) -> None:
        self.asked = 0

    def served(self, model: str) -> Served:
        return Served(model, "simulated")

    def complete(self, request: Request) -> Reply:
        self.asked += 1
        return Reply(REPLY, 100, 10, "stop", request.model)

"""What an endpoint says of the model it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What a listing says of every model alike, and where the weights lie on the server's host.
_NO_DETAILS = frozenset({"id", "object", "created", "owned_by", "root"})


@dataclass(frozen=True, slots=True)
class Served:
    """What an endpoint says of the model it serves.

    Attributes:
        model: Its name on the hub, or where else it comes from.
        owned_by: Who serves it, such as ``vllm``; ``None`` where the server leaves it out, as many do.
        details: What else is said of it and may be part of a result's identity.
        root: What the server was told to load, a name on the hub or a folder; no part of any identity.
    """

    model: str
    owned_by: str | None
    details: Mapping[str, Any] = field(default_factory=dict)
    root: str | None = field(default=None, compare=False)

    @classmethod
    def listed(cls, model: str, entry: Mapping[str, Any]) -> Served:
        """Return what an entry of ``GET /v1/models`` says; only the name is sure to be there, and no type is.

        Args:
            model: The model's own name, which the server may call otherwise.
            entry: The entry.
        """
        owner, root = entry.get("owned_by"), entry.get("root")
        details = {
            key: value for key, value in entry.items() if key not in _NO_DETAILS and isinstance(value, (int, str))
        }
        return cls(model, owner if isinstance(owner, str) else None, details, root if isinstance(root, str) else None)

    @property
    def context_length(self) -> int | None:
        """The longest prompt and reply together, in tokens, where the server reports it."""
        length = self.details.get("max_model_len")
        return length if isinstance(length, int) else None

    @property
    def revision(self) -> str | None:
        """The revision of the weights, where the server reports one."""
        return self.details.get("revision")

    @property
    def simulated(self) -> bool:
        """Whether the server itself says that it simulates."""
        return self.owned_by == "simulated"

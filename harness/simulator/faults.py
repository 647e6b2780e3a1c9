"""What goes wrong at a server that is asked to misbehave: how often, and at which attempts.

Whether an attempt fails is drawn by the request and by how often it has been asked here before, so that a rehearsal can
be repeated. An attempt from the twelfth on never fails: every fault passes for a client that tries as often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from harness import rng
from harness.errors import UserError
from harness.yaml_files import read_yaml

LAST_FAULTY_ATTEMPT = 11


class Fault(StrEnum):
    """A kind of fault."""

    SERVER_ERROR = "server_error"
    RATE_LIMIT = "rate_limit"
    RESET = "reset"
    HANG = "hang"
    DRIP = "drip"
    CUT = "cut"
    MALFORMED = "malformed"
    NO_USAGE = "no_usage"
    WRONG_MODEL = "wrong_model"


@dataclass(frozen=True)
class Faults:
    """The faults of a server.

    Attributes:
        shares: Share of the attempts that meet each kind.
        seed: Another one, other attempts.
        in_a_row: Attempts of a request that share a draw, from the first on.
        hang_s: Seconds that a hanging or dripping connection is kept open.
        retry_after_s: What ``Retry-After`` says.
    """

    shares: Mapping[Fault, float]
    seed: int = 0
    in_a_row: int = 1
    hang_s: float = 5.0
    retry_after_s: int = 1

    def at(self, identity: str, attempt: int) -> Fault | None:
        """The fault of one attempt, if it has one.

        Args:
            identity: Of the request.
            attempt: Counted from 1.
        """
        if attempt > LAST_FAULTY_ATTEMPT:
            return None
        point = rng.uniform("fault", str(self.seed), identity, str((attempt - 1) // self.in_a_row))
        for fault, share in self.shares.items():
            point -= share
            if point < 0:
                return fault
        return None


@dataclass
class FaultCounter:
    """Counts the attempts of every request at this server, and says which of them fail."""

    faults: Faults
    attempts: Counter[str] = field(default_factory=Counter)

    def next(self, identity: str) -> Fault | None:
        """The fault of the attempt that has just come in."""
        self.attempts[identity] += 1
        return self.faults.at(identity, self.attempts[identity])


_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_SCHEMA = {
    "type": "object",
    "required": ["shares"],
    "additionalProperties": False,
    "properties": {
        "shares": {
            "type": "object",
            "additionalProperties": False,
            "properties": {fault.value: _SHARE for fault in Fault},
        },
        "seed": {"type": "integer"},
        "in_a_row": {"type": "integer", "minimum": 1},
        "hang_s": {"type": "number", "exclusiveMinimum": 0},
        "retry_after_s": {"type": "integer", "minimum": 0},
    },
}


def load_faults(path: Path) -> Faults:
    """Read a file of faults.

    Raises:
        UserError: The file is missing or malformed, or the shares exceed 1 together.
    """
    entry = read_yaml(path, _SCHEMA)
    shares = {Fault(name): float(share) for name, share in entry.pop("shares").items()}
    if sum(shares.values()) > 1:
        raise UserError(f"{path}: the shares add up to {sum(shares.values()):g}; expected at most 1")
    return Faults(shares, **entry)

"""What can be set about the search."""

from __future__ import annotations

from dataclasses import dataclass

from harness.checks import check_number, check_whole


@dataclass(frozen=True)
class Config:
    """The settings of AFlow, with the values of its authors' code.

    Attributes:
        optimizer: Key of the backbone that proposes edits; ``None`` for the one that runs the workflow (D-AF-1).
        max_rounds: Most rounds after the first, which scores the start workflow.
        sample: How many rounds a parent is drawn from.
        uniform_share: Weight λ of the uniform part of that draw.
        sharpness: Factor α of a difference in score, in points, in the other part.
        patience: The search ends when the best rounds have stayed the same for this many in a row.
    """

    optimizer: str | None = None
    max_rounds: int = 20
    sample: int = 4
    uniform_share: float = 0.3
    sharpness: float = 0.2
    patience: int = 5

    def __post_init__(self) -> None:
        if not (self.optimizer is None or isinstance(self.optimizer, str)):
            raise ValueError(f"optimizer is {self.optimizer!r}; expected the key of a backbone, or null")
        check_whole("max_rounds", self.max_rounds, 0)
        for name in ("sample", "patience"):
            check_whole(name, getattr(self, name), 1)
        for name in ("uniform_share", "sharpness"):
            check_number(name, getattr(self, name), 0)
        if self.uniform_share > 1:
            raise ValueError(f"uniform_share is {self.uniform_share!r}; expected a share between 0 and 1")

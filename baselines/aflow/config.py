"""What can be set about the search."""

from __future__ import annotations

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from harness.declarations import Declaration, Share


class Config(Declaration):
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
    max_rounds: NonNegativeInt = 20
    sample: PositiveInt = 4
    uniform_share: Share = 0.3
    sharpness: NonNegativeFloat = 0.2
    patience: PositiveInt = 5

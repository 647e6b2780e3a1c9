"""What a run can decide: how probable each verdict on a claim is if the paper is exactly true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd

from analysis.claims.declaration import Claim
from analysis.claims.joint import spreads
from analysis.claims.judge import FAILS, HOLDS, Evidence, of_part, outcome_of
from analysis.claims.measured import Measured, asked_by, seeds_of
from analysis.claims.numbers import AbsentError, Ordered, Printed, Value
from analysis.claims.samples import SAMPLED, Design, Variation, draw, published_questions
from analysis.statistics import TAIL
from harness.runner.config import Preset

SAMPLES = 200
# Samples that are judged at a time, so that their arrays fit into a cache.
_BLOCK = 50
# A joint statement of more comparisons than these would take longer than all others together.
_MOST_COMPARISONS = 1000
#: Numbers of training seeds that are compared.
SEEDS = (1, 3, 5, 10)
#: A claim that is not reproduced more often than this, although it is true, cannot be decided by such a run.
HOPELESS = 0.2


class Chance(NamedTuple):
    """The shares of samples in which a claim is reproduced, and contradicted."""

    reproduced: float
    contradicted: float


def design_of(preset: Preset, seeds: Sequence[int], questions: Mapping[str, int] | None = None) -> Design:
    """Return the design of a preset with other seeds; numbers of questions are the paper's unless given."""

    def with_seeds(numbers: Sequence[int]) -> Preset:
        return preset.model_copy(update={"seeds": tuple(numbers)})

    rows = seeds_of(with_seeds((0, 1)))[0]
    trained = frozenset(row for row, numbers in rows.items() if len(numbers) > 1)
    return Design(questions or published_questions(), *seeds_of(with_seeds(seeds)), trained)


def why_unknown(claim: Claim) -> str:
    """Return why nothing is known of the chances of a claim; empty if something is."""
    measures = {measure for *_, measure in asked_by([claim])}
    if not measures:
        return "no result of a run" if claim.holds is None else "nothing is sampled"
    try:
        comparisons = max(_comparisons(claim.quantity(Printed(), *arguments)) for arguments in claim.parts())
    except AbsentError as absent:
        return f"not printed: {absent}"
    if strange := sorted(measures - SAMPLED):
        return f"no spread printed: {', '.join(strange)}"
    return f"not sampled: {comparisons} comparisons" if comparisons > _MOST_COMPARISONS else ""


def _comparisons(value: Value) -> int:
    return sum(map(_comparisons, value.values)) if isinstance(value, Ordered) else 1


def chances(
    claims: Iterable[Claim], design: Design, variation: Variation, *, primary_tail: float, samples: int = SAMPLES
) -> dict[str, Chance]:
    """Return the chances by claim, of those of which something is known, for one run of a design.

    A primary endpoint is decided at ``primary_tail``, every other claim by itself at 5 %.
    """
    known = [claim for claim in claims if not why_unknown(claim)]
    outcomes: dict[str, list[str]] = {claim.key: [] for claim in known}
    for start in range(0, samples, _BLOCK):
        frame = draw(known, design, variation, min(_BLOCK, samples - start), block=start)
        for claim in known:
            tail = primary_tail if claim.primary else TAIL
            outcomes[claim.key] += outcome_of(list(_evidence(claim, frame)), tail).tolist()
    return {key: Chance(*(each.count(name) / samples for name in (HOLDS, FAILS))) for key, each in outcomes.items()}


def _evidence(claim: Claim, frame: pd.DataFrame) -> Iterator[Evidence]:
    """Yield what each part of a claim requires, with the spread of its value in every sample."""
    for arguments in claim.parts():
        plain = Measured(frame)
        claim.quantity(plain, *arguments)
        jackknife = plain.jackknife
        value = claim.quantity(Measured(frame, jackknife), *arguments)
        yield of_part(claim.holds, arguments), spreads(value, partial(jackknife.spread, are_points=True))

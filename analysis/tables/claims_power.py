"""Power of a run: the chances of every claim, with some numbers of seeds, if the paper is exactly true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.claims import power
from analysis.claims.declaration import Claim
from analysis.claims.judge import CONSISTENT, judge, primary_tail
from analysis.claims.measured import Run
from analysis.claims.statements import CLAIMS
from analysis.columns import labels
from analysis.exhibit import NOT_RUN, entries
from analysis.source import Source
from analysis.table import Table, lay_out
from harness.runner.config import Preset

#: The usual aim of a plan.
POWER = 0.8
_PERCENT = "{:.0f}"


def build(source: Source, claims: Sequence[Claim] = CLAIMS, samples: int = power.SAMPLES) -> Table:
    """Return a row a claim."""
    frame = chances_by_seeds(claims, source.run, samples)
    known = frame[frame["unknown"] == ""]
    groups = {
        (_seeds(count), ""): {
            "Repr.": entries(100 * known[f"reproduced_{count}"], _PERCENT),
            "Contr.": entries(100 * known[f"contradicted_{count}"], _PERCENT),
        }
        for count in power.SEEDS
    }
    last = {("Seeds for 80 %", ""): {"": entries(known["seeds_for_power"], _PERCENT, NOT_RUN)}}
    rows = labels(known, "section", "claim", "paper_verdict")
    return Table(
        label="claims-power",
        caption=source.caption,
        simulated=False,
        provenance={"preset": source.run.name, "cells": "0"},
        shown=lay_out(rows, ("Claim", "In print"), {**groups, **last}),
        notes=(*source.legend, *_notes(frame, samples)),
        frame=frame,
    )


def chances_by_seeds(claims: Sequence[Claim], preset: Preset, samples: int) -> pd.DataFrame:
    """Return the chances of each claim for each number of seeds, and the smallest of these that gives the power."""
    frame = pd.DataFrame([parts[0] for parts in judge(claims, Run())])
    frame = frame[["claim", "section", "says", "primary"]].assign(
        paper_verdict=frame["claim_paper_verdict"],
        section=frame["section"].mask(frame["primary"], "Primary endpoints"),
        unknown=[power.why_unknown(claim) for claim in claims],
    )
    tail = primary_tail(claims)
    for count in power.SEEDS:
        design = power.design_of(preset, range(count))
        chances = power.chances(claims, design, primary_tail=tail, samples=samples)
        frame = frame.join(chances.add_suffix(f"_{count}"), on="claim")
    # With one seed an interval leaves out how far trainings differ, so that three may have less power than one.
    falling = {count: frame[f"reproduced_{count}"] >= POWER for count in reversed(power.SEEDS)}
    enough = pd.DataFrame(falling).cummin(axis=1).iloc[:, ::-1]
    frame["seeds_for_power"] = enough.idxmax(axis=1).where(enough.any(axis=1)).astype(float)
    return frame.sort_values("primary", ascending=False, kind="stable")


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _notes(frame: pd.DataFrame, samples: int) -> Iterator[str]:
    sizes = ", ".join(f"{key} {size}" for key, size in power.published_questions().items())
    yield (
        f"Of {samples} samples each, drawn with the paper's numbers as the truth, at its numbers of questions "
        f"({sizes}) and judged as a run is. Every number has a standard error of up to "
        f"{100 * (0.25 / samples) ** 0.5:.1f} points."
    )
    true = frame[(frame["unknown"] == "") & (frame["paper_verdict"] == CONSISTENT)]
    one = true["reproduced_1"]
    expected = ", ".join(f"{true[f'reproduced_{count}'].sum():.1f} with {_seeds(count)}" for count in power.SEEDS)
    yield (
        f"Of the {len(true)} claims here that the paper's numbers support, so many are expected to be reproduced: "
        f"{expected}. With one seed {(one < power.HOPELESS).sum()} have a chance below {100 * power.HOPELESS:.0f} %."
    )
    reasons = frame.loc[frame["unknown"] != "", "unknown"].str.partition(":")[0].value_counts()
    yield f"Of {reasons.sum()} others nothing is known: {'; '.join(f'{n} {reason}' for reason, n in reasons.items())}."

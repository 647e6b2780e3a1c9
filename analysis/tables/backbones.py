"""The pool of backbones: size and prices as the paper prints them and as this suite counts, and what a run asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis.published import Price, load
from analysis.results import short
from analysis.source import Source
from analysis.table import FAR as OFF
from analysis.table import NOT_RUN, Entry, Table, shown
from harness.files import ROOT, fingerprint
from harness.llm.backbones import PRICE_IN_PER_B, PRICE_OUT_PER_B, Backbone
from harness.llm.backbones import load as load_backbones
from harness.runner.config import Preset

BACKBONES = ROOT / "config" / "backbones.yaml"
_VALUES = {"size": "Size", "price_in": "Price of prompts", "price_out": "Price of replies"}
_COLUMNS = [
    *("backbone", "model", *(f"published_{name}" for name in _VALUES), *_VALUES, "follows_the_rule", "replies"),
    *("revision", "context_length", "preset", "config_hash"),
]
_SAME = 1e-9


def build(source: Source) -> Table:
    """Build the table: the backbones of the paper, then others that are declared.

    Raises:
        UserError: There is no preset, or ``config/backbones.yaml`` has a slip.
    """
    preset, published = source.run, load()
    declared = load_backbones(BACKBONES, preset.weights)
    config = fingerprint([BACKBONES, *([BACKBONES.with_name("weights.yaml")] if preset.weights else [])])
    keys = dict.fromkeys([*published.prices, *declared])
    frame = pd.DataFrame([_record(preset, key, published.prices.get(key), declared.get(key)) for key in keys])
    frame = frame.assign(preset=preset.name, config_hash=config)
    frame["replies"] = frame["replies"].astype(object).where(frame["replies"].notna(), None)
    rows = list(frame.itertuples())
    units = ("billions of parameters", "per million tokens", "per million tokens")
    groups = {
        (title, unit): {
            "Publ.": [_number(getattr(row, f"published_{name}")) for row in rows],
            "Here": [_here(row, name) for row in rows],
        }
        for (name, title), unit in zip(_VALUES.items(), units, strict=True)
    }
    groups["Asked", f"preset {preset.name}"] = {
        "Replies": [Entry(row.replies or NOT_RUN) for row in rows],
        "Revision": [Entry(_revision(preset, row)) for row in rows],
        "Context": [Entry(f"{row.context_length:.0f}" if row.replies else NOT_RUN) for row in rows],
    }
    labels = [
        ("pool", published.backbones.get(row.backbone, row.backbone), row.model or "not declared") for row in rows
    ]
    weights = {backbone.weights for backbone in declared.values() if backbone.weights}
    return Table(
        label="backbones",
        caption="Size and prices of the open-weight backbones, and what a run of this preset asks.",
        simulated=preset.simulated,
        shown=shown(labels, ("Backbone", "Model"), groups),
        notes=tuple(_notes(frame, sorted(weights))),
        provenance={"preset": preset.name, "config/backbones.yaml": short(config)},
        frame=frame[_COLUMNS],
    )


def follows_the_rule(printed: Price | None, backbone: Backbone) -> bool:
    """Whether the prices counted here are those that a size has (D-GEN-1): the printed one where there is one."""
    size = printed.size if printed else backbone.parameters_b
    pairs = ((backbone.price_in, PRICE_IN_PER_B * size), (backbone.price_out, PRICE_OUT_PER_B * size))
    return all(abs(price - rule) <= _SAME * rule for price, rule in pairs)


def _record(preset: Preset, key: str, printed: Price | None, backbone: Backbone | None) -> dict[str, Any]:
    record: dict[str, Any] = {"backbone": key, **dict.fromkeys(_COLUMNS[1:])}
    if printed:
        values = (printed.size, printed.input, printed.output)
        record |= {f"published_{name}": value for name, value in zip(_VALUES, values, strict=True)}
    if backbone:
        asked = "simulated" if preset.simulated else "by a server"
        record |= {
            "model": backbone.model,
            "size": backbone.parameters_b,
            "price_in": backbone.price_in,
            "price_out": backbone.price_out,
            "follows_the_rule": follows_the_rule(printed, backbone),
            "replies": asked if key in preset.backbones else None,
            "revision": backbone.revision,
            "context_length": backbone.context_length,
        }
    return record


def _number(value: float | None) -> Entry:
    return Entry("" if pd.isna(value) else f"{value:g}")


def _here(row: Any, name: str) -> Entry:
    own, printed = getattr(row, name), getattr(row, f"published_{name}")
    if pd.isna(own):
        return Entry(NOT_RUN)
    apart = not pd.isna(printed) and f"{own:g}" != f"{printed:g}"
    return Entry(f"{own:g}", sign="" if row.follows_the_rule else OFF, beside=f"{own - printed:+g}" if apart else "")


def _revision(preset: Preset, row: Any) -> str:
    if not row.replies:
        return NOT_RUN
    return short(row.revision) if row.revision and not preset.simulated else "not pinned"


def _notes(frame: pd.DataFrame, weights: list[str]) -> Iterator[str]:
    yield (
        "Publ.: printed in the paper. Here: by config/backbones.yaml, from which costs and FLOPs are counted; nothing "
        f"is measured. Prices are {PRICE_IN_PER_B:g} N for prompts and {PRICE_OUT_PER_B:g} N for replies, N the "
        "nominal size in billions; their unit is no currency."
    )
    if frame["follows_the_rule"].eq(False).any():
        yield f"{OFF}: not the prices of the printed size, so that every cost with this backbone is off."
    yield (
        "Asked: by what the preset says; which server and which revision in fact answered stands in the provenance of "
        "every table of results. Context: the longest prompt and reply together, in tokens."
    )
    if weights:
        yield f"Models and revisions are those of the weights {', '.join(weights)}, not the original ones."
    if frame["published_size"].isna().any():
        yield "A blank published column: the paper does not have the backbone."
    if frame["replies"].isna().any():
        yield f"{NOT_RUN}: not asked in this preset, or not declared."

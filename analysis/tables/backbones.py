"""The pool of backbones: size and prices as the paper has them and as this suite counts, and what a run asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from analysis.columns import entries, say
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
_UNITS = ("billions of parameters", "per million tokens", "per million tokens")
_COLUMNS = [
    *("backbone", "model", *(f"published_{name}" for name in _VALUES), *_VALUES, "follows_the_rule", "replies"),
    *("revision", "context_length", "preset", "config_hash"),
]


def build(source: Source) -> Table:
    """The backbones of the paper, then others that are declared."""
    preset, published = source.run, load()
    declared = load_backbones(BACKBONES, preset.weights)
    config = fingerprint([BACKBONES, *([BACKBONES.with_name("weights.yaml")] if preset.weights else [])])
    keys = dict.fromkeys([*published.prices, *declared])
    frame = pd.DataFrame([_record(preset, key, published.prices.get(key), declared.get(key)) for key in keys])
    frame = frame.assign(preset=preset.name, config_hash=config).reindex(columns=_COLUMNS)
    asked = frame["replies"].notna()
    revisions = ["" if pd.isna(one) or preset.simulated else short(one) for one in frame["revision"]]
    groups = {
        (title, unit): {"Publ.": entries(say(frame[f"published_{name}"], "{:g}")), "Here": _here(frame, name)}
        for (name, title), unit in zip(_VALUES.items(), _UNITS, strict=True)
    }
    groups["Asked", f"preset {preset.name}"] = {
        "Replies": entries(say(frame["replies"], str), NOT_RUN),
        "Revision": entries(pd.Series(revisions).replace("", "not pinned").where(asked, ""), NOT_RUN),
        "Context": entries(say(frame["context_length"].where(asked), "{:.0f}"), NOT_RUN),
    }
    labels = [
        ("pool", published.backbones.get(key, key), "not declared" if pd.isna(model) else model)
        for key, model in zip(frame["backbone"], frame["model"], strict=True)
    ]
    weights = {backbone.weights for backbone in declared.values() if backbone.weights}
    return Table(
        label="backbones",
        caption="Size and prices of the open-weight backbones, and what a run of this preset asks.",
        simulated=preset.simulated,
        shown=shown(labels, ("Backbone", "Model"), groups),
        notes=tuple(_legend(frame, sorted(weights))),
        provenance={"preset": preset.name, "config/backbones.yaml": short(config)},
        frame=frame,
    )


def follows_the_rule(printed: Price | None, backbone: Backbone) -> bool:
    """Whether the prices counted here are those that a size has (D-GEN-1): the printed one where there is one."""
    size = printed.size if printed else backbone.parameters_b
    rule = (PRICE_IN_PER_B * size, PRICE_OUT_PER_B * size)
    return bool(np.allclose((backbone.price_in, backbone.price_out), rule, rtol=1e-9, atol=0))


def _record(preset: Preset, key: str, printed: Price | None, backbone: Backbone | None) -> dict[str, Any]:
    record: dict[str, Any] = {"backbone": key}
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


def _here(frame: pd.DataFrame, name: str) -> list[Entry]:
    own, printed = (say(frame[column], "{:g}") for column in (name, f"published_{name}"))
    apart = say(frame[name] - frame[f"published_{name}"], "{:+g}").where(own != printed, "")
    return entries(own, NOT_RUN, sign=frame["follows_the_rule"].eq(False).map({True: OFF, False: ""}), beside=apart)


def _legend(frame: pd.DataFrame, weights: list[str]) -> Iterator[str]:
    yield (
        "Publ.: from the paper. Here: by config/backbones.yaml, from which costs and FLOPs are counted; nothing "
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

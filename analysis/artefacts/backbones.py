"""The pool of backbones: size and prices as the paper prints them and as this suite counts, and what a run asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis import tables
from analysis.provenance import short
from analysis.published import Price, Published, load
from analysis.source import Source
from analysis.tables import Entry, Group, Row, Table
from analysis.tidy import exact
from harness.files import ROOT, fingerprint
from harness.llm.backbones import PRICE_IN_PER_B, PRICE_OUT_PER_B, Backbone
from harness.llm.backbones import load as load_backbones
from harness.runner.config import Preset

OFF = "‡"
BACKBONES = ROOT / "config" / "backbones.yaml"
_PAIR = ("Publ.", "Here")
_ASKED = ("Replies", "Revision", "Context")
_SAME = 1e-9

Pair = tuple[Price | None, Backbone | None]


def build(source: Source) -> Table:
    """Build the table: the backbones of the paper, then others that are declared.

    Raises:
        UserError: There is no preset, or ``config/backbones.yaml`` has a slip.
    """
    preset, published = source.run, load()
    declared = load_backbones(BACKBONES, preset.weights)
    keys = dict.fromkeys([*published.prices, *declared])
    pairs = {key: (published.prices.get(key), declared.get(key)) for key in keys}
    config = fingerprint([BACKBONES, *([BACKBONES.with_name("weights.yaml")] if preset.weights else [])])
    return Table(
        label="backbones",
        caption="Size and prices of the open-weight backbones, and what a run of this preset asks.",
        simulated=preset.simulated,
        heads=("Backbone", "Model"),
        groups=(
            Group("Size", "billions of parameters", _PAIR),
            Group("Price of prompts", "per million tokens", _PAIR),
            Group("Price of replies", "per million tokens", _PAIR),
            Group("Asked", f"preset {preset.name}", _ASKED),
        ),
        rows=tuple(_row(preset, published, key, *pair) for key, pair in pairs.items()),
        notes=tuple(_notes(preset, pairs)),
        provenance=(("preset", preset.name), ("config/backbones.yaml", short(config))),
        records=tuple(_record(preset, key, *pair, config) for key, pair in pairs.items()),
    )


def follows_the_rule(printed: Price | None, backbone: Backbone) -> bool:
    """Whether the prices counted here are those that a size has (D-GEN-1): the printed one where there is one."""
    size = printed.size if printed else backbone.parameters_b
    pairs = ((backbone.price_in, PRICE_IN_PER_B * size), (backbone.price_out, PRICE_OUT_PER_B * size))
    return all(abs(price - rule) <= _SAME * rule for price, rule in pairs)


def _values(printed: Price | None, backbone: Backbone | None) -> dict[str, tuple[float | None, float | None]]:
    """Published and own, by what they are."""
    left = (printed.size, printed.input, printed.output) if printed else (None,) * 3
    right = (backbone.parameters_b, backbone.price_in, backbone.price_out) if backbone else (None,) * 3
    return dict(zip(("size", "price_in", "price_out"), zip(left, right, strict=True), strict=True))


def _row(preset: Preset, published: Published, key: str, printed: Price | None, backbone: Backbone | None) -> Row:
    off = backbone is not None and not follows_the_rule(printed, backbone)
    entries = [entry for pair in _values(printed, backbone).values() for entry in _entries(*pair, off=off)]
    labels = (published.backbones.get(key, key), backbone.model if backbone else "not declared")
    return Row("pool", labels, (*entries, *_asked(preset, key, backbone)))


def _entries(printed: float | None, own: float | None, *, off: bool) -> tuple[Entry, Entry]:
    left = Entry("" if printed is None else f"{printed:g}")
    if own is None:
        return left, Entry(tables.NOT_RUN)
    apart = printed is not None and f"{own:g}" != f"{printed:g}"
    return left, Entry(f"{own:g}", sign=OFF if off else "", beside=f"{own - (printed or 0):+g}" if apart else "")


def _asked(preset: Preset, key: str, backbone: Backbone | None) -> tuple[Entry, ...]:
    if backbone is None or key not in preset.backbones:
        return (Entry(tables.NOT_RUN),) * len(_ASKED)
    return Entry(_replies(preset)), Entry(_revision(preset, backbone)), Entry(f"{backbone.context_length}")


def _replies(preset: Preset) -> str:
    return "simulated" if preset.simulated else "by a server"


def _revision(preset: Preset, backbone: Backbone) -> str:
    return short(backbone.revision) if backbone.revision and not preset.simulated else "not pinned"


def _notes(preset: Preset, pairs: Mapping[str, Pair]) -> Iterator[str]:
    yield (
        "Publ.: printed in the paper. Here: by config/backbones.yaml, from which costs and FLOPs are counted; nothing "
        f"is measured. Prices are {PRICE_IN_PER_B:g} N for prompts and {PRICE_OUT_PER_B:g} N for replies, N the "
        "nominal size in billions; their unit is no currency."
    )
    if any(backbone is not None and not follows_the_rule(printed, backbone) for printed, backbone in pairs.values()):
        yield f"{OFF}: not the prices of the printed size, so that every cost with this backbone is off."
    yield (
        "Asked: by what the preset says; which server and which revision in fact answered stands in the provenance of "
        "every table of results. Context: the longest prompt and reply together, in tokens."
    )
    weights = {backbone.weights for _, backbone in pairs.values() if backbone is not None and backbone.weights}
    if weights:
        yield f"Models and revisions are those of the weights {', '.join(sorted(weights))}, not the original ones."
    if any(printed is None for printed, _ in pairs.values()):
        yield "A blank published column: the paper does not have the backbone."
    if any(backbone is None or key not in preset.backbones for key, (_, backbone) in pairs.items()):
        yield f"{tables.NOT_RUN}: not asked in this preset, or not declared."


def _record(
    preset: Preset, key: str, printed: Price | None, backbone: Backbone | None, config: str
) -> Mapping[str, str]:
    values = _values(printed, backbone)
    asked = backbone is not None and key in preset.backbones
    return {
        "backbone": key,
        "model": backbone.model if backbone else "",
        **{f"published_{name}": _optional(pair[0]) for name, pair in values.items()},
        **{name: _optional(pair[1]) for name, pair in values.items()},
        "follows_the_rule": str(follows_the_rule(printed, backbone)).lower() if backbone else "",
        "replies": _replies(preset) if asked else "",
        "revision": (backbone.revision or "") if backbone else "",
        "context_length": str(backbone.context_length) if backbone else "",
        "preset": preset.name,
        "config_hash": config,
    }


def _optional(value: float | None) -> str:
    return "" if value is None else exact(value)

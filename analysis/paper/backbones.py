"""The pool of backbones: sizes and prices in the paper and in this suite, and the models of a preset."""

import pandas as pd

from analysis.exhibit import FAR as OFF
from analysis.exhibit import NOT_RUN, Entry
from analysis.finished_cells import short
from analysis.published import load
from analysis.registry import Source
from analysis.table import Table, entries, format_series, lay_out, row_labels
from harness.files import digest

_VALUES = {
    "size": ("Size", "billions of parameters"),
    "price_in": ("Price of prompts", "per million tokens"),
    "price_out": ("Price of replies", "per million tokens"),
}


def build(source: Source) -> Table:
    """Return the paper's backbones, then other declared ones."""
    preset, published = source.preset, load()
    declared = preset.declared
    identity = short(digest({key: one.model_dump(mode="json") for key, one in declared.items()}))
    prices = {key: (price.size, price.input, price.output) for key, price in published.prices.items()}
    printed = pd.DataFrame.from_dict(prices, orient="index", columns=[f"published_{name}" for name in _VALUES])
    here = {
        key: (one.model, one.parameters_b, one.price_in, one.price_out, one.revision, one.context_length)
        for key, one in declared.items()
    }
    frame = pd.DataFrame.from_dict(here, orient="index", columns=["model", *_VALUES, "revision", "context_length"])
    frame = frame.reindex(list(dict.fromkeys([*prices, *here]))).join(printed)
    is_asked = frame["model"].notna() & frame.index.isin(preset.backbones)
    # Prices follow the size (D-GEN-1), so a size that differs from the printed one changes the price.
    follows = frame["size"].eq(frame["published_size"].fillna(frame["size"]))
    frame = frame.assign(
        follows_the_rule=follows.astype(object).where(frame["model"].notna()),
        replies=is_asked.map({True: "simulated" if preset.simulated else "by a server", False: None}),
        preset=preset.name,
        config_hash=identity,
    )
    revisions = frame["revision"].map(lambda name: "not pinned" if pd.isna(name) or preset.simulated else short(name))
    groups = {group: _values(frame, name) for name, group in _VALUES.items()}
    groups["Asked", f"preset {preset.name}"] = {
        "Replies": entries(frame["replies"], str, NOT_RUN),
        "Revision": entries(revisions.where(is_asked, ""), missing=NOT_RUN),
        "Context": entries(frame["context_length"].where(is_asked), "{:.0f}", NOT_RUN),
    }
    titles = [published.backbones.get(key, key) for key in frame.index]
    names = frame.assign(section="pool", title=titles, model=frame["model"].fillna("not declared"))
    files = sorted({backbone.weights for backbone in declared.values() if backbone.weights})
    weights = (
        [f"Models and revisions are those of the weights {', '.join(files)}, not the original ones."] if files else []
    )
    return Table(
        label="backbones",
        caption=source.caption,
        simulated=preset.simulated,
        shown=lay_out(row_labels(names, "section", "title", "model", heads=("Backbone", "Model")), groups),
        notes=(*source.legend, *weights),
        provenance={"preset": preset.name, "backbones": identity},
        frame=frame.rename_axis("backbone").reset_index(),
    )


def _values(frame: pd.DataFrame, name: str) -> dict[str, list[Entry]]:
    here, printed = (format_series(frame[column], "{:g}") for column in (name, f"published_{name}"))
    apart = format_series(frame[name] - frame[f"published_{name}"], "{:+g}").where(here != printed, "")
    sign = frame["follows_the_rule"].eq(False).map({True: OFF, False: ""})
    return {"Publ.": entries(printed), "Here": entries(here, missing=NOT_RUN, sign=sign, beside=apart)}

"""Content of ``run.json``: everything that identifies the results of a cell."""

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from harness.agents.trajectory import Answered
from harness.files import sha256
from harness.llm.backbones import Backbone
from harness.llm.call_log import CallLog
from harness.llm.recordings import SERVERS
from harness.llm.request import NOT_SENT, REPLY_NAME, Sampling, Served
from harness.runner import layout
from harness.runner.plan import Plan
from harness.runner.resources import Resources
from harness.runner.results import read_rows


def record_of(plan: Plan, resources: Resources) -> dict[str, Any]:
    """Content of ``run.json`` without the hashes of tables: everything that identifies the results."""
    questions, trained = plan.questions, plan.cell.entry.trained
    runtime, served = resources.runtime, resources.served
    record = {
        **plan.cell.record,
        "benchmark_title": questions.title,
        "simulated": runtime.simulated,
        "notes": _notes(plan, served),
        "data": {
            **{name: getattr(questions, name) for name in ("source", "splits", "checksum", "split_checksum")},
            **({"drawn": questions.drawn.checksum} if questions.splits == "resampled" else {}),
            "n_test": len(questions.test),
            "n_train": len(questions.train) if trained or plan.cell.answers_training else 0,
        },
        "config": plan.config.model_dump(mode="json"),
        "backbones": {key: _backbone_record(runtime.backbones[key], model) for key, model in served.items()},
        "sandbox": runtime.tools.sandbox.level,
        "rule_version": plan.benchmark.rule_version,
        "python": platform.python_version(),  # runs the programs
    }
    if plan.setting.matched is not None:
        record["matched"] = plan.setting.matched._asdict()
    if trained:
        record["encoder"] = runtime.embeddings.encoder.identity
        record["trained"] = sha256(plan.folder / layout.TRAINED)
    return record


def record_of_answers(plan: Plan, log: CallLog, answered: Sequence[Answered]) -> dict[str, Any]:
    """Distinct sampling parameters; on recordings, also their digests and the numbers of recorded and new replies."""
    used = frozenset[Sampling]().union(*(each.trajectory.samplings for each in answered))
    record: dict[str, Any] = {"sampling": [sampling._asdict() for sampling in sorted(used)]}
    if plan.cell.run.recordings:
        keys = {call.key for each in answered for call in each.trajectory.calls}
        if plan.cell.entry.trained:
            keys |= {row["key"] for row in read_rows(plan.folder / "training_calls.parquet", ["key"])}
        asked = sum(key in log for key in keys)
        record["recordings"] = {recording.path.name: recording.sha256 for recording in plan.cell.run.recorded}
        record["replies"] = {"recorded": len(keys) - asked, "asked": asked}
    return record


def _backbone_record(backbone: Backbone, served: Served) -> dict[str, Any]:
    record = {
        **served.details,
        "model": served.model,
        "parameters_b": backbone.parameters_b,
        "prices": [backbone.price_in, backbone.price_out],
        "served_by": served.owned_by,
        "revision": backbone.revision,
        "revision_confirmed": served.revision is not None,
    }
    if backbone.price and backbone.price.cached is not None:
        record["price_cached"] = backbone.price.cached
    if backbone.weights:
        record["weights"] = backbone.weights
    return record


def _notes(plan: Plan, served: Mapping[str, Served]) -> list[str]:
    """Differences from the setting of the paper."""
    cell, backbones = plan.cell, plan.cell.backbones.values()
    limit, is_trained = cell.limit, cell.entry.trained
    notes = [
        (True, note) for note in sorted({f"weights {backbone.weights}" for backbone in backbones if backbone.weights})
    ]
    for key, model in served.items():
        backbone, details = cell.backbones[key], model.details
        is_quantised = bool(model.quantisation) and not backbone.weights
        notes += [
            (is_quantised, f"{key}: {model.quantisation} weights, as reported by its server"),
            (NOT_SENT in details, f"{key}: {details.get(NOT_SENT)} not sent, since its server rejects it"),
            (REPLY_NAME in details, f"{key}: replies may name their model {details.get(REPLY_NAME)}"),
            (bool(backbone.extra_body), f"{key}: {orjson.dumps(backbone.extra_body).decode()} sent with each call"),
        ]
    has_changed = "earlier" in orjson.loads((plan.folder / SERVERS).read_bytes())
    # A table of outcomes has costs of its own or, if its pool is free, none.
    is_free = not any(backbone.price_in or backbone.price_out for backbone in backbones)
    has_no_prices = plan.benchmark.names_models and (is_free or "costs of its file" in plan.benchmark.notes)
    has_prices = any(backbone.price for backbone in backbones) and not has_no_prices
    merged = [backbone.key for backbone in backbones if backbone.system == "merge"]
    scales = {str(model.details.get("length_scale", 1)) for model in served.values()}
    notes += [
        (has_changed, f"a server's description changed during the run ({SERVERS})"),
        (bool(plan.vectors.problem), "vectors not checked"),
        *((True, note) for note in plan.benchmark.notes),
        (has_prices, "costs at the prices of the preset's pool"),
        (bool(merged), f"system message merged into the user's for {', '.join(merged)}"),
        (cell.run.decoding == "greedy", "greedy decoding"),
        *((True, f"length_scale {scale}") for scale in sorted(scales - {"1"})),
        (limit.share is not None, f"limit: {100 * (limit.share or 0):g}% of the questions"),
    ]
    bounds = [("training question", limit.train, is_trained), ("epoch", limit.epochs, is_trained)]
    for name, bound, counts in (*bounds, ("test question", limit.test, True)):
        notes.append((counts and bound is not None, f"limit: {bound} {name}{'' if bound == 1 else 's'}"))
    return [note for holds, note in notes if holds]

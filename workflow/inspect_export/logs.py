"""One finished cell as a log of Inspect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
)
from inspect_ai.model import ModelUsage

from analysis.results import Cell, Run
from analysis.tables import warning
from analysis.trajectories import Record
from workflow.inspect_export.samples import CORRECTNESS, ID_LENGTH, NO_TIME, STATUS, Samples

SIMULATED, REAL = "simulated", "real"
_TIME = NO_TIME.isoformat()


def log_of(cell: Cell, records: Iterable[Record]) -> EvalLog:
    """A cell with all its trajectories.

    Times, hosts and random ids are left out or follow from the run id, so that equal results make equal logs.
    """
    run = cell.run
    made = Samples(run.run_id, SIMULATED if run.simulated else "backbone")
    samples = [made.sample(record) for record in records]
    return EvalLog(
        status="success",
        eval=_spec(cell, [str(sample.id) for sample in samples]),
        plan=EvalPlan(name=run.method, steps=[EvalPlanStep(solver=run.method, params=_settings(run))]),
        results=_results(cell),
        stats=EvalStats(started_at=_TIME, completed_at=_TIME, model_usage=_usage(samples)),
        samples=samples,
    )


def _spec(cell: Cell, ids: list[str]) -> EvalSpec:
    run = cell.run
    kind = SIMULATED if run.simulated else REAL
    task = f"{run.benchmark}_{SIMULATED}" if run.simulated else run.benchmark
    title = f"{run.benchmark_title} ({SIMULATED} backbones)" if run.simulated else run.benchmark_title
    return EvalSpec(
        eval_id=run.run_id[:ID_LENGTH],
        run_id=run.run_id[:ID_LENGTH],
        task_id=run.run_id[ID_LENGTH : 2 * ID_LENGTH],
        created=_TIME,
        task=task,
        task_display_name=title,
        task_version=run.rule_version,
        task_args={"benchmark": run.benchmark},
        solver=run.method,
        solver_args=_settings(run),
        tags=[kind, f"preset:{run.preset}", f"method:{run.method}", f"seed:{run.seed}"],
        dataset=EvalDataset(
            name=run.benchmark_title, location=run.data.source, samples=len(ids), sample_ids=ids, shuffled=False
        ),
        model=f"{run.method}/{run.backbone}",
        config=EvalConfig(),
        metadata=_metadata(run),
    )


def _metadata(run: Run) -> dict[str, Any]:
    """Where the numbers come from; what is simulated says so first."""
    return {
        **({"warning": warning(run.simulated)} if run.simulated else {}),
        "simulated": run.simulated,
        "calibrated": run.calibrated,
        "preset": run.preset,
        "method": run.method_title,
        "backbone": run.backbone,
        "seed": run.seed,
        "notes": list(run.notes),
        "run_id": run.run_id,
        "config_hash": run.config_hash,
        "code": run.code,
        "data": {"checksum": run.data.checksum, "splits": run.data.splits, "split_checksum": run.data.split_checksum},
        "backbones": {key: dict(one) for key, one in run.backbones.items()},
        "times": "left out, for they are no part of a result; see timing.json of the cell",
    }


def _settings(run: Run) -> dict[str, Any]:
    return {"backbone": run.backbone, "seed": run.seed}


def _results(cell: Cell) -> EvalResults:
    items = cell.items
    n = len(items.item_id)
    statuses = Counter(status.value for status in items.status)
    return EvalResults(
        total_samples=n,
        completed_samples=n,
        scores=[
            _score(CORRECTNESS, n, {"accuracy": sum(items.correct) / n}),
            _score(STATUS, n, {name: count / n for name, count in sorted(statuses.items())}),
        ],
    )


def _score(name: str, n: int, metrics: dict[str, float]) -> EvalScore:
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=n,
        unscored_samples=0,
        metrics={key: EvalMetric(name=key, value=value) for key, value in metrics.items()},
    )


def _usage(samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
    found: dict[str, ModelUsage] = {}
    for sample in samples:
        for name, usage in sample.model_usage.items():
            found[name] = found.get(name, ModelUsage()) + usage
    return dict(sorted(found.items()))

"""Export cells as logs of Inspect: one log per cell, one sample per question, one span per step."""

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inspect_ai import event as events
from inspect_ai import log as logs
from inspect_ai import model as models
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from pydantic import TypeAdapter

from analysis.beyond.trajectories import CallRecord, Step, TrajectoryRecord, records
from analysis.exhibit import md_escape as escape
from analysis.finished_cells import FinishedCell, RunInfo
from harness.benchmarks.items import Item
from harness.files import write_atomically
from harness.llm.recordings import Recording
from harness.runner.results import SIMULATED_WARNING

CORRECTNESS, STATUS = "correct", "status"
# Converters of logs take a name for a model's only if it begins with a provider of Inspect.
_PROVIDER = "openai-api"
# The length of Inspect's own ids.
_ID_LENGTH = 22
_UNKNOWN = "(not known here: the log of the calls is gone)"
_TOTALS = ("calls", "prompt_tokens", "completion_tokens", "cost_total", "cost_steps", "depth", "utility")
_STOPS: Mapping[str, models.StopReason] = {"stop": "stop", "length": "max_tokens"}
_MESSAGES: TypeAdapter[list[models.ChatMessage]] = TypeAdapter(list[models.ChatMessage])


def write_cell(cell: FinishedCell, recorded: Sequence[Recording], out: Path) -> Path:
    """Write the log of a finished cell to ``BENCHMARK/METHOD_BACKBONE_seedN.eval``."""
    run = cell.run
    path = out / run.benchmark / f"{run.method}_{run.backbone}_seed{run.seed}.eval"
    # No clock is part of a result, so the date of a log is that of the cell's files.
    date = datetime.fromtimestamp(int((cell.folder / "run.json").stat().st_mtime), UTC)
    log = _log(cell, date, [_Sample(run, date, record).build() for record in records(cell, recorded)])
    with tempfile.NamedTemporaryFile(suffix=".eval") as temporary:
        logs.write_eval_log(log, temporary.name, format="eval")
        write_atomically(path, Path(temporary.name).read_bytes())
    return path


def _log(cell: FinishedCell, date: datetime, samples: Sequence[logs.EvalSample]) -> logs.EvalLog:
    run, correct = cell.run, cell.items["correct"].astype(float)
    metrics = {"accuracy": correct.mean(), "stderr": correct.std() / math.sqrt(len(correct)) if len(correct) > 1 else 0}
    spec = logs.EvalSpec(
        eval_id=run.run_id[:_ID_LENGTH],
        run_id=run.run_id[:_ID_LENGTH],
        task_id=run.run_id[_ID_LENGTH : 2 * _ID_LENGTH],
        created=date.isoformat(),
        task=f"{run.benchmark}_simulated" if run.simulated else run.benchmark,
        task_display_name=f"{run.benchmark_title} (simulated backbones)" if run.simulated else run.benchmark_title,
        task_version=run.rule_version,
        task_args={"benchmark": run.benchmark},
        solver=run.method,
        solver_args={"backbone": run.backbone, "seed": run.seed},
        tags=["simulated" if run.simulated else "real", f"preset:{run.preset}", f"seed:{run.seed}"],
        dataset=logs.EvalDataset(name=run.benchmark_title, location=run.data.source, samples=len(samples)),
        model=f"{_PROVIDER}/{run.method}/{run.backbone}",
        config=logs.EvalConfig(),
        packages={name: version(name) for name in ("gmr-suite", "inspect_ai")},
        metadata={
            **({"warning": SIMULATED_WARNING} if run.simulated else {}),
            **run.model_dump(mode="json", by_alias=True, exclude={"config", "tables"}),
        },
    )
    score = logs.EvalScore(
        name=CORRECTNESS,
        scorer=CORRECTNESS,
        metrics={name: logs.EvalMetric(name=name, value=float(value)) for name, value in metrics.items()},
    )
    usage = _sums(pair for sample in samples for pair in sample.model_usage.items())
    return logs.EvalLog(
        status="success",
        eval=spec,
        results=logs.EvalResults(total_samples=len(samples), completed_samples=len(samples), scores=[score]),
        stats=logs.EvalStats(started_at=date.isoformat(), completed_at=date.isoformat(), model_usage=usage),
        samples=list(samples),
    )


class _Sample:
    def __init__(self, run: RunInfo, date: datetime, record: TrajectoryRecord) -> None:
        self._record, self._item, self._row = record, record.item, record.row
        self._said = [use for step in record.steps for use in step.calls]
        self._maker = "simulated" if run.simulated else "backbone"
        self._when: dict[str, Any] = {"timestamp": date, "working_start": 0.0}

    def build(self) -> logs.EvalSample:
        item, row, last = self._item, self._row, self._said[-1] if self._said else None
        score = Score(
            value=CORRECT if row["correct"] else INCORRECT,
            answer=None if row["answer"] is None else _answer(item, row["answer"]),
            explanation=": ".join(filter(None, (row["status"], row["detail"]))),
            metadata=dict(row["also"]) or None,
        )
        target, steps = _answer(item, item.gold), enumerate(self._record.steps)
        spans = [event for number, step in steps for event in self._span(str(number), step)]
        return logs.EvalSample(
            id=item.id,
            epoch=1,
            input=item.question,
            choices=list(item.options) or None,
            target=target,
            messages=[*self._prompt(last), models.ChatMessageAssistant(content=_text(last))] if last else [],
            output=self._output(row["text"], last) if last else models.ModelOutput(),
            scores={CORRECTNESS: score, STATUS: Score(value=row["status"], explanation=row["detail"] or None)},
            metadata={name: row[name] for name in _TOTALS},
            events=[*spans, events.ScoreEvent(score=score, target=target, scorer=CORRECTNESS, **self._when)],
            model_usage=_sums((self._model(use), _usage(use)) for use in self._said),
        )

    def _span(self, span: str, step: Step) -> Iterator[events.Event]:
        yield events.SpanBeginEvent(id=span, name=step.title, type="step", span_id=span, **self._when)
        if before := _bullets(step.before()):
            yield events.InfoEvent(source="decided", data=before, span_id=span, **self._when)
        for use in step.calls:
            yield events.ModelEvent(
                model=self._model(use),
                role=f"{use.call.role or use.call.purpose} {use.call.slot or ''}".strip() or None,
                input=self._prompt(use),
                tools=[],
                tool_choice="none",
                config=models.GenerateConfig(),
                output=self._output(_text(use), use),
                error=use.call.error,
                metadata={name: getattr(use.call, name) for name in ("purpose", "slot", "key", "cost")},
                span_id=span,
                **self._when,
            )
            if use.call.tool:
                yield events.InfoEvent(source="tool", data=escape(use.call.tool), span_id=span, **self._when)
        if after := _bullets(step.after()):
            yield events.InfoEvent(source="then", data=after, span_id=span, **self._when)
        yield events.SpanEndEvent(id=span, span_id=span, **self._when)

    def _prompt(self, use: CallRecord) -> list[models.ChatMessage]:
        if use.messages is None:
            return [models.ChatMessageUser(content=_UNKNOWN)]
        return _MESSAGES.validate_python([message._asdict() for message in use.messages])

    def _output(self, text: str, use: CallRecord) -> models.ModelOutput:
        stop = _STOPS.get(use.call.finish_reason, "unknown")
        output = models.ModelOutput.from_content(self._model(use), text, stop, use.call.error)
        return output.model_copy(update={"usage": _usage(use)})

    def _model(self, use: CallRecord) -> str:
        return f"{self._maker}/{use.call.backbone}"


def _text(use: CallRecord) -> str:
    return _UNKNOWN if use.reply is None else use.reply


def _answer(item: Item, text: str) -> str:
    """Put programs in a fence: the viewer renders Markdown."""
    fence = "````" if "```" in text else "```"
    return text if item.code is None else f"{fence}python\n{text}\n{fence}"


def _usage(use: CallRecord) -> models.ModelUsage:
    prompt, completion = use.call.prompt_tokens, use.call.completion_tokens
    return models.ModelUsage(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)


def _sums(usages: Iterable[tuple[str, models.ModelUsage]]) -> dict[str, models.ModelUsage]:
    sums: defaultdict[str, models.ModelUsage] = defaultdict(models.ModelUsage)
    for name, usage in usages:
        sums[name] += usage
    return dict(sorted(sums.items()))


def _bullets(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- **{escape(label)}** {escape(text)}\n" for label, text in lines)

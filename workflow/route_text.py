"""What ``gmr route`` prints: a router's next decision, or a whole trajectory, for the eyes of a person."""

from __future__ import annotations

from collections.abc import Iterable

from gmr.outlook import Option, Outlook
from workflow import terminal, trajectory_text
from workflow.route import About, Walk
from workflow.terminal import count, numbers, percent
from workflow.trajectory_text import MADE_UP, failure, spent, step_lines, verdict_lines

_ROLES_SHOWN = 5
_BAR = 24


def to_json(about: About, found: Outlook | Walk) -> str:
    """The same for a script: one document, with nothing left out."""
    kind = "outlook" if isinstance(found, Outlook) else "walk"
    return trajectory_text.to_json({"about": about, kind: found})


class Page(terminal.Page):
    """Lays out what a router does."""

    def show(self, about: About, found: Outlook | Walk) -> str:
        """What a router was found to do."""
        return self._outlook(about, found) if isinstance(found, Outlook) else self._walk(about, found)

    def _outlook(self, about: About, outlook: Outlook) -> str:
        top, rest = outlook.roles[:_ROLES_SHOWN], outlook.roles[_ROLES_SHOWN:]
        others = [f"  {f'{len(rest)} others':<32}{percent(sum(one.probability for one in rest)):>8}"] if rest else []
        return _lines(
            *self._head(about),
            "",
            "Step 1, role",
            *_bars(top),
            *others,
            "",
            f"Step 1, backbone of {top[0].key}",
            *_bars(outlook.backbones),
            "",
            "No model was asked. Later steps depend on what the models reply: --run asks them.",
        )

    def _walk(self, about: About, walk: Walk) -> str:
        asked = "simulated backbones" if walk.simulated else "models"
        how = "the most probable choices" if walk.decode == "greedy" else "sampled choices"
        aggregator = walk.aggregator.call
        read = numbers("step", walk.aggregated) if walk.aggregated else "nothing: memory is empty"
        return _lines(
            *(_warning(about) if walk.simulated else []),
            *self._head(about),
            "",
            f"Run with the {asked} of preset {walk.preset}, {how}.",
            *(line for step in walk.steps for line in ("", *step_lines(step, self))),
            "",
            f"Aggregator: {aggregator.backbone}, the backbone chosen most often",
            *self.entry("read", read),
            *spent([aggregator], self),
            "",
            "Answer",
            *self.indented(walk.answer or failure([aggregator]), "  ", whole=True),
            *(verdict_lines(walk.grade.gold, walk.grade.verdict, self) if walk.grade else []),
            "",
            f"Cost {walk.cost_total:.3g}, of this {walk.cost_steps:.3g} in {count(len(walk.steps), 'step')} and "
            f"{aggregator.cost:.3g} in the aggregation.",
        )

    def _head(self, about: About) -> list[str]:
        trained = f"trained on {'SIMULATED backbones' if about.simulated else 'models'}"
        run = f"preset {about.preset}, seed {about.seed}, {count(about.epoch, 'epoch')}"
        return [
            f"{about.method} for {about.benchmark}, {trained}: {run}",
            about.checkpoint,
            "",
            f"Question {about.item or ''}".rstrip(),
            *self.indented(about.question, "  "),
        ]


def _warning(about: About) -> list[str]:
    unknown = [] if about.item else ["They know the prepared questions alone (--item) and nothing of any other text."]
    return [MADE_UP, *unknown, ""]


def _bars(options: Iterable[Option]) -> list[str]:
    shown = list(options)
    largest = max(one.probability for one in shown)
    return [
        f"  {one.key:<32}{percent(one.probability):>8}  {'█' * round(_BAR * one.probability / largest)}".rstrip()
        for one in shown
    ]


def _lines(*lines: str) -> str:
    return "\n".join(lines)

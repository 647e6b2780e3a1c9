"""What the measures of a training log mean: the charts they are shown in, with title, unit and explanation.

Methods log different things under different names, and some the same name for different things, so an explanation may
hold for the methods of one module alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

GMR, MASROUTER, PUPPETEER, AFLOW = "gmr", "baselines.masrouter", "baselines.puppeteer", "baselines.aflow"
_GROUPS = (
    "Share of questions whose rollouts were all right or all wrong (rewards), or all of the same utility (utilities)."
)
_OTHER = "The method logs it under this name; what it means is said where the method is described."


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of measures that go together.

    Attributes:
        key: What the address of the page calls it.
        title: Its heading.
        unit: Of the values shown.
        about: What is measured, in a sentence or two.
        measures: Names in the training log, ``*`` for anything; the key itself where none is given.
        factor: From the unit of the log to that of the chart.
        module: The methods it holds for, by their module; all where none is given.
        main: Whether the overview has it.
        stacked: Whether the values are parts of a whole.
    """

    key: str
    title: str
    unit: str
    about: str
    measures: tuple[str, ...] = ()
    factor: float = 1.0
    module: str = ""
    main: bool = False
    stacked: bool = False

    def among(self, names: Collection[str]) -> list[str]:
        """Which of the names in a log it shows, in its own order and then by name."""
        patterns = self.measures or (self.key,)
        found = [name for pattern in patterns for name in sorted(names) if fnmatchcase(name, pattern)]
        return list(dict.fromkeys(found))


PANELS = (
    Panel(
        "score",
        "Score of each round",
        "%",
        "Accuracy of the round's workflow on all training questions, and the best so far: what the search goes by.",
        ("score", "best"),
        module=AFLOW,
        main=True,
    ),
    Panel(
        "utility",
        "Utility",
        "right − λ_c · cost",
        "What training maximises: 1 if right, else 0, minus λ_c times the cost of the steps; mean over attempts.",
        module=GMR,
        main=True,
    ),
    Panel(
        "utility",
        "Utility",
        "right − κ · cost",
        "What training maximises: 1 if right, else 0, minus κ times the cost of all calls; mean over attempts.",
        module=MASROUTER,
        main=True,
    ),
    Panel(
        "utility",
        "Utility",
        "±1, less the cost of the steps",
        "What training maximises: 1 if right, else −1, less what each step cost, discounted; mean over questions.",
        module=PUPPETEER,
        main=True,
    ),
    Panel("utility", "Utility", "of the method", "What training maximises, in the unit of the method.", main=True),
    Panel("accuracy", "Accuracy", "%", "Attempts with a right answer.", factor=100, main=True),
    Panel(
        "cost",
        "Cost of an attempt",
        "1e-4 of the paper's unit",
        "Mean cost of all calls of an attempt, and of its steps alone, without the call that makes the answer.",
        ("cost_total", "cost_steps"),
        factor=1e4,
        main=True,
    ),
    Panel("depth", "Depth", "steps", "Executed steps of an attempt, on average.", main=True),
    Panel("write_rate", "Write rate", "%", "Contributions stored / steps executed.", factor=100, main=True),
    Panel(
        "retrieved",
        "Retrieved share",
        "%",
        "Records shown to agents / records that could have been shown. A gap: there was none.",
        factor=100,
        main=True,
    ),
    Panel(
        "empty_memory",
        "Empty memory",
        "%",
        "Attempts that reached the aggregator with nothing stored.",
        factor=100,
    ),
    Panel(
        "entropy",
        "Entropy of the decisions",
        "nats",
        "Mean entropy of a decision, by what is decided; 0: settled. At most ln n for a choice among n, ln 2 = 0.69 "
        "for a gate. A gap: there was nothing to decide.",
        ("entropy", "entropy_*"),
        main=True,
    ),
    Panel(
        "max_probability",
        "How sure the choices are",
        "probability",
        "Mean of the largest probability; near 1 the choice has settled.",
        ("max_probability_*",),
    ),
    Panel(
        "equal_groups",
        "Questions that teach nothing",
        "%",
        _GROUPS,
        ("equal_reward_groups", "zero_advantage_groups"),
        factor=100,
    ),
    Panel("shares", "Modes of the teams", "%", "Share of questions.", ("share_*",), 100, MASROUTER, stacked=True),
    Panel("shares", "Actions", "%", "Share of choices.", ("share_*",), 100, PUPPETEER, stacked=True),
    Panel("agents", "Agents of a team", "agents", "Mean number.", module=MASROUTER),
    Panel(
        "classifier_accuracy",
        "Task recognised",
        "%",
        "Questions whose kind of task the router's classifier names rightly.",
        factor=100,
        module=MASROUTER,
    ),
    Panel("return", "Return of a choice", "±1, less the cost of the steps", "Mean over all choices.", module=PUPPETEER),
    Panel("at_step_limit", "Ended by the step limit", "%", "Share of paths.", factor=100, module=PUPPETEER),
    Panel("paths", "Paths of a question", "paths", "Mean number.", module=PUPPETEER),
    Panel("parent", "Parent of each round", "round", "The round whose workflow was edited; 0: none.", module=AFLOW),
    Panel(
        "loss",
        "Loss",
        "as optimised",
        "The whole loss of the update, and its parts before they are weighted. Losses of two methods do not compare.",
        ("loss", "policy_loss", "task_loss"),
    ),
    Panel("vae_loss", "Loss of the autoencoders", "unweighted", "Of the profiles of roles and backbones."),
    Panel(
        "truncated",
        "Texts cut by the sentence encoder",
        "%",
        "Share of the embedded texts that are longer than it reads.",
        factor=100,
    ),
    Panel("amount", "What a point stands for", "how many", "In all.", ("trajectories", "steps", "calls")),
)
#: How a line is called whose measure says too little or too much.
LABELS: Mapping[str, str] = {
    "best": "best so far",
    "cost_total": "all calls",
    "cost_steps": "steps alone",
    "entropy": "action",
    "entropy_retrieval": "retrieve",
    "equal_reward_groups": "equal rewards",
    "zero_advantage_groups": "equal utilities",
    "score": "score",
    "trajectories": "attempts",
    "policy_loss": "policy",
    "task_loss": "task",
    "loss": "whole",
}
_FAMILIES = ("entropy_", "share_", "max_probability_")


def panels_of(module: str, names: Collection[str]) -> Iterator[Panel]:
    """The charts of a training log, those of the method's own module before what holds for all.

    Args:
        module: Module of the method.
        names: Measures of its log. One that no panel knows has a panel of its own.
    """
    shown: set[str] = set()
    keys: set[str] = set()
    for panel in PANELS:
        found = panel.among(names)
        if found and panel.module in (module, "") and panel.key not in keys:
            keys.add(panel.key)
            shown |= set(found)
            yield panel
    yield from (Panel(name, name, "as logged", _OTHER) for name in sorted(set(names) - shown))


def label(measure: str) -> str:
    """How the line of a measure is called within its chart."""
    family = next((prefix for prefix in _FAMILIES if measure.startswith(prefix)), "")
    return LABELS.get(measure, measure.removeprefix(family).replace("_", " "))

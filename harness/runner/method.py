"""Interface of a method: ``solve``, and ``fit``, ``load`` and ``utility`` if it learns."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator

from harness.agents.runtime import Context
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.files import check
from harness.llm.backbones import Backbone

if TYPE_CHECKING:
    from harness.agents.trajectory import Answered
    from harness.training.checkpoint import Checkpoint
    from harness.training.loop import Training

T = TypeVar("T")
_LEARNERS = ("fit", "load", "utility")


def _with_default(values: Mapping[str, T]) -> Mapping[str, T]:
    if "default" not in values:
        raise ValueError(f"{dict(values)!r} has no `default`, for the benchmarks that are not named; add one")
    return values


# Values by benchmark, with a default for benchmarks that are not named.
ByBenchmark = Annotated[Mapping[str, T], AfterValidator(_with_default)]


class Matched(NamedTuple):
    """Means over the test questions of a finished cell, which a method has to meet."""

    method: str
    cost: float  # of a question, as tables compare it
    depth: float  # executed steps of a question


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of a method: row, pool, benchmark, seed."""

    backbone: str  # row of the table: key of a backbone, or ``"pool"``
    pool: Mapping[str, Backbone]  # that the method may ask, in the order of the preset
    benchmark: str
    domain: str  # of roles that fits the benchmark
    seed: int
    max_epochs: int | None  # most passes over the training questions, ``None`` for no limit
    matched: Matched | None = None  # what an entry with ``matches`` has to meet
    # To multiply every weight of cost by, so that cost weighs the same in every pool (D-GMR-5).
    cost_factor: float = 1.0

    @property
    def one_backbone(self) -> str:
        """Return the backbone of the row; UserError if that is the pool."""
        if self.backbone not in self.pool:
            raise UserError(
                f"the row {self.backbone!r} is no backbone, and this method works with one; name backbones under "
                "`rows` of its entry"
            )
        return self.backbone

    @property
    def target(self) -> Matched:
        """Return what the method has to meet; UserError if its entry names no method to match."""
        if self.matched is None:
            raise UserError("this method meets the cost of another: name that under `matches` of its entry")
        return self.matched

    def of_benchmark(self, values: Mapping[str, T]) -> T:
        """Return the value for the benchmark, or the ``default``."""
        return values.get(self.benchmark, values["default"])

    def epochs(self, values: Mapping[str, int]) -> int:
        """Return the passes over the training questions of the benchmark, at most ``max_epochs``."""
        epochs = self.of_benchmark(values)
        return epochs if self.max_epochs is None else min(epochs, self.max_epochs)


class Method(Protocol):
    """Row of a table, ready to answer questions."""

    async def solve(self, item: Item, context: Context) -> str:
        """Return the answer to a question, as a text to grade."""


class Learner(Method, Protocol):
    """Method that learns from the training questions before it answers."""

    async def fit(self, training: Training) -> None:
        """Learn, or resume from the last checkpoint."""

    def utility(self, answered: Answered) -> float:
        """Return the utility of a graded trajectory, which training maximises; reported for test questions, too."""

    def load(self, checkpoint: Checkpoint) -> None:
        """Load what :meth:`fit` saved; callers check that it was trained for the same setting."""


def settings_of(module: str, config: Any) -> Any:
    """Return the ``Config`` of an entry with defaults; UserError for an unknown module or field."""
    return check(config, _imported(module).Config, f"config of {module}")


def build(module: str, setting: Setting, config: Any, *, trained: bool = False) -> Any:
    """Build the :class:`Method` of a configuration entry, or the :class:`Learner` if it is ``trained``.

    The module provides ``Config``, a :class:`~harness.files.Declaration` of the entry's ``config``, and
    ``build(setting, config)``. Raises UserError for an unknown module or field, or ``trained`` without a Learner.
    """
    method = _imported(module).build(setting, settings_of(module, config))
    missing = [name for name in _LEARNERS if trained and not hasattr(method, name)]
    if missing:
        raise UserError(
            f"an entry says `trained` of {module}, whose method has no {', '.join(missing)}; add what is "
            "missing (docs/adding.md), or remove `trained`"
        )
    return method


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(f"an entry names the module {module!r}, but {error}") from error

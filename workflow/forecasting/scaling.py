"""From a cell that was run to the same cell at another size.

Test questions cost what the measured ones cost on average. A training question costs, in each pass, what the measured
ones cost in that pass: a pass that a log has half answered is cheaper than the first, and that stays so. A pass beyond
those measured costs what the last one did. Calls about no question, such as a search's proposals, go with the passes.
A search ends when it likes: no earlier than it did where it was measured, no later than it is allowed to; what lies
between is reckoned in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workflow.forecasting.measured import COLUMNS, CONSULTING, TEST, TRAINING, Measured
from workflow.forecasting.sizes import Size

if TYPE_CHECKING:
    import pandas as pd

# Questions of one cell differ by a fifth to a half of their mean cost; fewer than five do not tell by how much.
_FEW = 5
_SPREAD = 0.5
# What is learned from fewer questions is another router, and a search ends with another workflow. From a quarter of the
# questions, costs of six learning cells of preset `embedded` were foreseen within 1.7, of two searches within 2.7
# (docs/forecast.md).
_LEARNED = 1.5
_SEARCHED = 2.0
# Of a normal distribution, 95 of 100 lie within so many standard errors.
_SIGMAS = 2.0


@dataclass(frozen=True)
class Amounts:
    """What a cell takes: one row a backbone with the columns :data:`~workflow.forecasting.measured.COLUMNS`.

    Attributes:
        point: As expected.
        low: At the low end of what is likely.
        high: At the high end.
    """

    point: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame

    def within(self, factor: float) -> Amounts:
        """With ends that are further away by a factor."""
        return Amounts(self.point, self.low / factor, self.high * factor)


def scaled(measured: Measured, size: Size) -> Amounts:
    """What a measured cell takes at another size.

    Args:
        measured: The cell.
        size: What it is scaled to.
    """
    made = measured.passes
    most = made if size.passes is None else size.passes
    fewest = min(made, most) if size.searches else most
    test = _of_questions(measured, TEST, size.test, [0])
    ends = [_training(measured, size, passes) for passes in dict.fromkeys((fewest, most))]
    first, last = ends[0], ends[-1]
    middle = (first.point + last.point) / 2
    amounts = Amounts(test.point + middle, test.low + first.low, test.high + last.high)
    if made == 0 or size.train == measured.train:
        return amounts
    return amounts.within(_SEARCHED if size.searches else _LEARNED)


def total(amounts: Sequence[Amounts]) -> Amounts:
    """The sum; ends add up, as if all cells erred to the same side: they share their questions."""
    import pandas as pd

    def added(frames: list[pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(frames).groupby(level=0, sort=False).sum()

    return Amounts(*(added([getattr(one, end) for one in amounts]) for end in ("point", "low", "high")))


def _training(measured: Measured, size: Size, passes: int) -> Amounts:
    made = measured.passes
    # Each pass of the training to come, by the measured one that stands for it.
    stand_ins = [min(number, made) for number in range(1, passes + 1)] if made else []
    # A search's rounds differ too much for its last to stand for all that follow.
    if size.searches and passes > made > 0:
        stand_ins = [*range(1, made + 1), *_spread_over(made, passes - made)]
    about = _of_questions(measured, TRAINING, size.train, stand_ins)
    consulting = _by_backbone(measured.rows[measured.rows["phase"] == CONSULTING], measured, stand_ins)
    return Amounts(about.point + consulting, about.low + consulting, about.high + consulting)


def _spread_over(made: int, more: int) -> list[int]:
    """So many rounds again, from all that were measured alike."""
    return [1 + (number * made) // more % made for number in range(more)]


def _of_questions(measured: Measured, phase: str, wanted: int, passes: Sequence[int]) -> Amounts:
    rows = measured.rows[measured.rows["phase"] == phase]
    had = rows["item_id"].nunique()
    if not had or not passes:
        nothing = _by_backbone(rows.iloc[:0], measured, passes)
        return Amounts(nothing, nothing, nothing)
    point = _by_backbone(rows, measured, passes) * (wanted / had)
    error = _relative_error(rows, had, wanted)
    return Amounts(point, point * (1 - error).clip(lower=0.0), point * (1 + error))


def _relative_error(rows: pd.DataFrame, had: int, wanted: int) -> pd.Series[float]:
    """Of means over ``had`` questions, for those over ``wanted``, of which they are some; by column."""
    each = rows.groupby("item_id")[list(COLUMNS)].sum()
    spread = (each.std() / each.mean()).fillna(_SPREAD)
    if had < _FEW:
        spread[:] = _SPREAD
    unseen = max(0.0, 1 - had / wanted) if wanted else 0.0
    return spread * (_SIGMAS * (unseen / had) ** 0.5)


def _by_backbone(rows: pd.DataFrame, measured: Measured, passes: Sequence[int]) -> pd.DataFrame:
    """Sums by backbone over passes, each as often as it is named."""
    import pandas as pd

    times = pd.Series(passes, dtype="int64").value_counts()
    weighted = rows[list(COLUMNS)].mul(rows["pass"].map(times).fillna(0.0), axis=0)
    backbones = list(dict.fromkeys(measured.rows["backbone"]))
    return weighted.groupby(rows["backbone"]).sum().reindex(backbones, fill_value=0.0).astype(float)

"""From finished paths to the answer: a final call for each, and a vote (D-PUP-7)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from baselines.puppeteer import prompts
from baselines.puppeteer.actions import TEMPERATURE
from baselines.puppeteer.path import Path
from harness.agents.trajectory import Context
from harness.benchmarks.items import Item
from harness.concurrency import gather
from harness.llm.request import Kind


async def close(paths: Sequence[Path], backbone: str, item: Item, context: Context) -> str:
    """The answer of a question.

    On programming questions the last path that holds a valid program gives it: two right programs are rarely the same
    text, so there is no vote. Where no path holds one, the final call of the last path writes it (D-PUP-11).
    """
    step = 1 + max(path.steps for path in paths)

    async def final(path: Path) -> str:
        prompt = prompts.final(item, context.rules, path)
        ask = functools.partial(context.ask, backbone, prompt, step=step, slot=path.slot, temperature=TEMPERATURE)
        kind: Kind = "aggregate" if item.code is None else "solve"
        return (await ask(purpose="aggregate", kind=kind, is_step=False)).text

    if item.code is not None:
        written = [path.program for path in paths if path.program is not None]
        return prompts.fenced(written[-1]) if written else await final(paths[-1])
    return elected(await gather(final(path) for path in paths), context)


def elected(texts: Sequence[str], context: Context) -> str:
    """The last text with the answer that most texts give; the last text of all where none gives any."""
    answers = [context.extract(text) for text in texts]
    counts = Counter(answer for answer in answers if answer is not None)
    most = max(counts.values(), default=0)
    winners = {answer for answer, count in counts.items() if count == most}
    voted = [text for text, answer in zip(texts, answers, strict=True) if answer in winners]
    return (voted or texts)[-1]

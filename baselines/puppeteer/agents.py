"""One activation of an agent: its call, and for the programmer the run of its program (D-PUP-10)."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

from baselines.puppeteer import prompts
from baselines.puppeteer.actions import TEMPERATURE, Action
from baselines.puppeteer.path import Contribution, Messages, Path
from harness.agents.activation import appended
from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, Value, programs
from harness.agents.trajectory import Context
from harness.benchmarks.items import CodeTask, Item
from harness.benchmarks.programs import definitions, parse
from harness.llm.request import Message, Reply

Ask = Callable[..., Awaitable[Reply]]


async def act(action: Action, backbone: str, item: Item, path: Path, context: Context) -> Path:
    """Let an agent contribute to a path once.

    Args:
        action: Who acts; not the end of the path.
        backbone: Key of the backbone behind all agents.
        item: The question.
        path: The work so far.
        context: Where rules, models, embeddings and tools are.

    Raises:
        UserError: The sandbox is broken, or an endpoint is gone.
    """
    ask: Ask = functools.partial(
        context.ask,
        backbone,
        step=path.steps + 1,
        slot=path.slot,
        role=action.key,
        kind=action.turn,
        style=action.style,
        temperature=TEMPERATURE,
    )
    prompt = prompts.turn(action, item, context.rules, path)
    reply = await ask(prompt, purpose="act", form="program" if action.kind == "program" else "answer")
    if reply.error is not None:
        # A call that failed leaves no conversation to continue.
        one = Contribution("", None, path.dialogs.get(action.key, ()), _tokens(reply))
    elif item.code is not None:
        one = await _implemented(action, item.code, item, prompt, reply, context)
    elif action.kind == "program":
        one = await _computed(prompt, reply, ask, context)
    else:
        answer = prompts.stated(reply.text) if action.answers else None
        one = Contribution(reply.text, answer, _continued(prompt, reply), _tokens(reply))
    return path.after(action, one, await context.embed(one.text))


def program_of(text: str, task: CodeTask) -> str | None:
    """The first program of a text that parses and defines the function asked for; ``None`` for none."""
    trees = ((source, parse(source)) for source in programs(text))
    return next((source for source, tree in trees if tree and task.entry_point in definitions(tree)), None)


async def _implemented(
    action: Action, task: CodeTask, item: Item, prompt: Messages, reply: Reply, context: Context
) -> Contribution:
    """A turn on a programming question; the programmer's reply is run on the visible examples (D-PUP-11)."""
    outcome = await context.code_tools.examples(item, reply.text) if action.kind == "program" else ""
    text = reply.text if outcome in ("", NO_EXAMPLE) else appended(reply.text, outcome)
    return Contribution(text, None, _continued(prompt, reply), _tokens(reply), program_of(reply.text, task))


async def _computed(prompt: Messages, reply: Reply, ask: Ask, context: Context) -> Contribution:
    """A program that computes the answer, and the call that states it if the program ran (D-PUP-10)."""
    value = await context.code_tools.value(reply.text)
    if value is None or value.printed is None:
        return Contribution(appended(reply.text, _failure(value)), None, _continued(prompt, reply), _tokens(reply))
    told = f"The program was executed; its variable answer holds {value.printed}"
    conversation = (*prompt, Message("assistant", reply.text), Message("user", f"{told}\n\n{prompts.STATE}"))
    second = await ask(conversation, purpose="second_call")
    dialog = _continued(prompt, reply) if second.error is not None else _continued(conversation, second)
    text = f"{told}\n\n{second.text}".strip()
    return Contribution(text, prompts.stated(second.text), dialog, _tokens(reply) + _tokens(second))


def _failure(value: Value | None) -> str:
    return NO_PROGRAM if value is None else f"The program gave no value: {value.failure}."


def _continued(prompt: Messages, reply: Reply) -> Messages:
    return (*prompt, Message("assistant", reply.text))


def _tokens(reply: Reply) -> int:
    return reply.prompt_tokens + reply.completion_tokens

"""Puppeteer's ten actions, their prompts, and one turn of an agent (D-PUP-2, D-PUP-7, D-PUP-10)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from harness.agents.activation import append_text
from harness.agents.code_tools import NO_EXAMPLE, NO_PROGRAM, program_defining
from harness.agents.prompts import RECORDS_HEADER, Record, join, render_records, team_prompt
from harness.benchmarks.reading import last_box, statements
from harness.files import Declaration, read_entries
from harness.method import CallSpec, Context, Item, Message

# The released code sends this temperature with every call (D-GEN-2).
TEMPERATURE = 0.1


class Action(Declaration):
    """Action that the policy can choose."""

    key: str
    name: str  # speaker of its contributions
    kind: Literal["reasoning", "program", "end"]  # one call, a call whose program is executed, or no call
    persona: str
    instruction: str
    answers: bool = True  # gets the output rules and gives an answer

    @property
    def profile(self) -> str:
        return f"{self.persona} {self.instruction}".strip()


ACTIONS = tuple(read_entries(Path(__file__).with_name("agents.yaml"), Action).values())
KEYS = tuple(action.key for action in ACTIONS)
TERMINATE = KEYS.index("terminate")


Messages = tuple[Message, ...]


class AgentStep(NamedTuple):
    """One step of a path: an action and its contribution."""

    action: Action
    text: str  # shown to later agents; empty if the call failed for good
    answer: str | None  # its answer, verbatim
    dialog: Messages  # conversation so far; continued if the agent acts again
    tokens: int  # prompt plus completion tokens of its calls
    program: str | None = None  # its valid program (programming questions only)


# Steps on one question so far.
Work = tuple[AgentStep, ...]


CANDIDATES_HEADER = "Candidate answers of your team, oldest first:"
AGAIN = "It is your turn again, with the same task as before. The work has gone on since."
COMPUTE = (
    "Write one Python program in a fenced block that computes the answer and leaves its result in a variable named "
    "answer. Only Python's standard library can be imported. The program will be executed."
)
IMPLEMENT = (
    "Write the program as a whole in one fenced Python block. It will be executed on the examples that the question "
    "states."
)
STATE = "Check that this fits the question, then state the answer."
AGGREGATE = (
    "You speak for a team that has finished its work. Compare the candidate answers with the question, and with each "
    "other, and give the single most reliable answer, whether it is one of them or not."
)
NO_CANDIDATES = "Your team has left no candidate answer."
WRITE = (
    "You speak for a team that has finished its work and has left no program. Write the program that the question asks "
    "for, with the help of what the team has contributed."
)
# The released code has such a line for GSM-Hard, but not for MATH and programming (D-PUP-2).
PREAMBLE = {"gsm_hard": "The following mathematical problem is to be solved by writing a Python program:"}


def with_preamble(item: Item) -> Item:
    """Prepend the benchmark's preamble, if any. Agents and policy see the result."""
    line = PREAMBLE.get(item.benchmark)
    return item if line is None else replace(item, question=f"{line}\n{item.question}")


def turn_prompt(action: Action, item: Item, rules: str, path: Work) -> Messages:
    """Build an agent's prompt: a new conversation, or its earlier one with the current contributions."""
    records = history(path)
    # The task is in the user message, since the second call of a conversation has another task.
    task = "" if action.kind != "program" else COMPUTE if item.code is None else IMPLEMENT
    earlier = _dialog(action, path)
    if earlier:
        return (*earlier, Message("user", join(AGAIN, task, render_records(records))))
    system = (action.persona, action.instruction, rules if action.answers else "")
    if not records:
        return team_prompt(system, item, (), task)
    return team_prompt(system, item, records, header=join(task, RECORDS_HEADER))


def history(path: Work) -> list[Record]:
    return [Record(step.action.name, step.text) for step in path]


def _dialog(action: Action, path: Work) -> Messages:
    return next((step.dialog for step in reversed(path) if step.action == action), ())


def final(item: Item, rules: str, path: Work) -> Messages:
    """Build the final prompt from candidate answers (D-PUP-7) or, for code, all contributions (D-PUP-11)."""
    if item.code is not None:
        return team_prompt((WRITE, rules), item, history(path))
    answers = ((step.action.name, step.answer) for step in path if step.answer is not None)
    records = [Record(speaker, f"The answer is {answer}") for speaker, answer in answers]
    closing = "" if records else NO_CANDIDATES
    return team_prompt((AGGREGATE, rules), item, records, closing, header=CANDIDATES_HEADER)


def answer_in(text: str) -> str | None:
    """Return a reply's answer verbatim: its last box, else the text after its last "answer is"."""
    box = last_box(text)
    if box:
        return f"\\boxed{{{box}}}"
    lines: Sequence[str] = [statement.line for statement in statements(text) if statement.line]
    return lines[-1] if lines else None


async def act(action: Action, backbone: str, item: Item, path: Work, context: Context) -> AgentStep:
    """Let an agent contribute once.

    A programmer's program is run on the visible examples of a programming question (D-PUP-11). On other questions it
    computes a value, which a second call turns into an answer (D-PUP-10).
    """
    is_program = action.kind == "program"
    spec = CallSpec(len(path) + 1, "act", role=action.key, temperature=TEMPERATURE)
    prompt = turn_prompt(action, item, context.rules, path)
    reply = await context.ask(backbone, prompt, spec)
    tokens = reply.prompt_tokens + reply.completion_tokens
    if reply.error is not None:
        # A failed call does not extend the conversation.
        return AgentStep(action, "", None, _dialog(action, path), tokens)
    dialog = (*prompt, Message("assistant", reply.text))
    text, answer, program = reply.text, None, None
    if item.code is not None:
        outcome = await context.code_tools.examples(context.item, reply.text) if is_program else ""
        context.record_tool_output(reply, outcome, item)
        text = reply.text if outcome in ("", NO_EXAMPLE) else append_text(reply.text, outcome)
        program = program_defining(reply.text, item.code.entry_point)
    elif is_program:
        value = await context.code_tools.value(reply.text)
        outcome = str(value or NO_PROGRAM)
        context.record_tool_output(reply, outcome, item)
        text = append_text(reply.text, outcome)
        if value is not None and value.printed is not None:
            continued = (*dialog, Message("user", f"{outcome}\n\n{STATE}"))
            second = await context.ask(backbone, continued, spec._replace(purpose="second_call"))
            tokens += second.prompt_tokens + second.completion_tokens
            dialog = dialog if second.error is not None else (*continued, Message("assistant", second.text))
            text, answer = f"{outcome}\n\n{second.text}".strip(), answer_in(second.text)
    elif action.answers:
        answer = answer_in(reply.text)
    return AgentStep(action, text, answer, dialog, tokens, program)

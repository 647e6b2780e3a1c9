"""Execution of workflows: operators with prompts, calls and code tools (D-AF-7)."""

import re
import string
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from baselines.aflow.workflow import MOST_REPEATS, OPERATORS, Status, Workflow
from harness.agents.activation import append_text
from harness.agents.code_tools import NO_PROGRAM, answer_program, programs
from harness.agents.prompts import Record, question_prompt, team_prompt
from harness.benchmarks.programs import fenced
from harness.concurrency import gather
from harness.method import CallSpec, Context, Decision, Message, Reply

HEADER = "Results of earlier steps, in their order:"
CANDIDATES = "The candidates:"
OTHERS_TEMPERATURE = 0.7
MOST_ATTEMPTS = 3
MOST_REFLECTIONS = 3
UNLISTED = "unlisted"

# Capital letters only, since the a in "candidate a" is usually an article.
_LETTER = re.compile(r"\b[Cc](?:andidate|ANDIDATE)\b[\s:*_(\[\"']*([A-Z])\b")


class NodeOutput(NamedTuple):
    """Output of one run of a node. Some operators have a status."""

    text: str
    status: Status | None = None


class NodeRun(NamedTuple):
    """One run of a node."""

    context: Context
    backbone: str
    step: int  # position of the node in the workflow, from 1
    repetition: int  # index among the runs of the node, from 0
    instruction: str = ""
    records: Sequence[Record] = ()  # non-empty results of the node's inputs

    async def ask(self, messages: tuple[Message, ...], purpose: str, attempt: int = 0) -> Reply:
        """Ask the executor. The first run of a node is greedy, the others sample independently (D-AF-2)."""
        spec = CallSpec(self.step, purpose, self.slot + attempt, draw=self.draw)
        if self.repetition:
            spec = spec._replace(temperature=OTHERS_TEMPERATURE, is_sample=True)
        return await self.context.ask(self.backbone, messages, spec)

    @property
    def draw(self) -> int:
        """Sample index: 0 for the greedy run, else unique among all runs."""
        return (self.step - 1) * MOST_REPEATS + self.repetition if self.repetition else 0

    @property
    def slot(self) -> int:
        return self.repetition * max(MOST_ATTEMPTS, MOST_REFLECTIONS)

    def prompt(self, instruction: str) -> tuple[Message, ...]:
        """Build the prompt. Without instruction and records it equals Single LLM's prompt."""
        context = self.context
        if not self.records:
            return question_prompt(instruction, context.rules, context.item)
        return team_prompt((instruction, context.rules), context.item, self.records, header=HEADER)


async def custom(run: NodeRun) -> NodeOutput:
    return NodeOutput((await run.ask(run.prompt(run.instruction), "custom")).text)


async def generate_code(run: NodeRun) -> NodeOutput:
    """Make one call and return the program in the reply, or the whole reply if it has none."""
    text = (await run.ask(run.prompt(run.instruction), "generate_code")).text
    program = (run.context.extract(text) or "").strip("\n")
    return NodeOutput(fenced(program) if program.strip() else text)


async def generate_answer(run: NodeRun) -> NodeOutput:
    prompt = run.prompt(OPERATORS["AnswerGenerate"].prompt)
    return NodeOutput((await run.ask(prompt, "generate_answer")).text)


async def ensemble(run: NodeRun) -> NodeOutput:
    """Pick a candidate by its letter in one call, or the first by default (D-AF-5). One candidate needs no call."""
    records = run.records
    if len(records) < 2:
        return NodeOutput(records[0].text if records else "")
    letters = string.ascii_uppercase[: len(records)]
    candidates = [Record(f"Candidate {letter}", record.text) for letter, record in zip(letters, records, strict=True)]
    prompt = team_prompt((OPERATORS["ScEnsemble"].prompt,), run.context.item, candidates, header=CANDIDATES)
    reply = await run.ask(prompt, "ensemble")
    named = _LETTER.findall(reply.text)
    letter = named[-1] if named and named[-1] in letters else ""
    run.context.decide(Decision(run.step, "ensemble", run.slot, letter or UNLISTED, len(records), 0.0))
    return NodeOutput(records[letters.index(letter) if letter else 0].text)


async def programmer(run: NodeRun) -> NodeOutput:
    """Let a program compute the answer, in up to three attempts. Returns its value or, if all fail, the last reply."""
    conversation = run.prompt(OPERATORS["Programmer"].prompt)
    text = ""
    for attempt in range(MOST_ATTEMPTS):
        reply = await run.ask(conversation, "program", attempt)
        if reply.error is not None:
            break
        text = reply.text
        value = await run.context.code_tools.value(text)
        run.context.record_tool_output(reply, str(value or NO_PROGRAM), run.context.item)
        if value is not None and value.printed not in (None, "None"):
            return NodeOutput(f"{fenced(answer_program(text) or '')}\nThe answer is {value.printed}", "passed")
        failure = "there is no program in a fenced Python block" if value is None else value.failure
        again = OPERATORS["Programmer"].again.format(failure=failure or "answer holds None")
        conversation = (*conversation, Message("assistant", text), Message("user", again))
    return NodeOutput(text, "failed")


async def check_solution(run: NodeRun) -> NodeOutput:
    """Return the first solution that passes the visible examples. If none does, revise the first program (D-AF-4)."""
    solutions = [record.text for record in run.records]
    for solution in solutions:
        if await _status(run.context, solution) == "passed":
            return NodeOutput(solution, "passed")
    solution = next((text for text in solutions if programs(text)), "")
    for attempt in range(MOST_REFLECTIONS if solution else 0):
        failed = append_text(solution, await run.context.code_tools.examples(run.context.item, solution))
        system, records = (OPERATORS["Test"].prompt, run.context.rules), [Record("Solution", failed)]
        prompt = team_prompt(system, run.context.item, records, header="The solution:")
        text = (await run.ask(prompt, "reflect", attempt)).text
        if not programs(text):
            break
        solution = text
        if await _status(run.context, solution) == "passed":
            return NodeOutput(solution, "passed")
    return NodeOutput(solution or (solutions[0] if solutions else ""), "failed")


async def _status(context: Context, solution: str) -> Status:
    if not programs(solution):
        return "failed"
    return "failed" if await context.code_tools.passes(context.item, solution) is False else "passed"


RUN: Mapping[str, Callable[[NodeRun], Coroutine[Any, Any, NodeOutput]]] = {
    "Custom": custom,
    "CustomCodeGenerate": generate_code,
    "AnswerGenerate": generate_answer,
    "ScEnsemble": ensemble,
    "Programmer": programmer,
    "Test": check_solution,
}


async def run_workflow(workflow: Workflow, executor: str, context: Context) -> str:
    """Run a valid workflow and return the last node's output. Runs of one node are concurrent."""
    # Each node has at least one output. Failed outputs come last.
    outputs: dict[str, list[NodeOutput]] = {}
    for step, node in enumerate(workflow.nodes, 1):
        if node.when is not None and outputs[node.when.node][0].status != node.when.outcome:
            # A skipped node passes on the outputs of its first source or of its condition's node, without status.
            source = (*node.sources, node.when.node)[0]
            outputs[node.id] = [NodeOutput(output.text) for output in outputs[source]]
            continue
        texts = ((name, output.text) for name in node.sources for output in outputs[name])
        records = [Record(f"Result of {name}", text) for name, text in texts if text.strip()]
        runs = (NodeRun(context, executor, step, number, node.instruction, records) for number in range(node.repeat))
        unsorted = await gather(RUN[node.operator](run) for run in runs)
        outputs[node.id] = sorted(unsorted, key=lambda output: output.status == "failed")
    return outputs[workflow.nodes[-1].id][0].text

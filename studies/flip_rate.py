"""Determinism of a server at temperature 0: the share of replies and verdicts that differ when asked again.

    python -m studies.flip_rate --preset paper [--requests 200]

The prompts are those of Single LLM on the preset's test questions, the benchmarks taking turns. Each backbone is asked
all of them one at a time, once more, and then all at once, as far as max_in_flight of its endpoint allows: what differs
between the first two differs by itself, what differs besides between the first and the third differs with the company
in a batch. Let nothing else ask the servers meanwhile. Simulated backbones never flip, and have no server to ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Annotated

import openai
import typer
from tqdm import tqdm

from analysis.statistics import wilson
from analysis.table import grid
from cli.app import Overrides, PresetName, preset_of
from harness.agents.prompts import question_prompt
from harness.benchmarks import Tools, benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import read
from harness.concurrency import gather
from harness.errors import UserError
from harness.files import write_atomically
from harness.llm.backbones import Backbone
from harness.llm.endpoints import Endpoint
from harness.llm.request import Request
from harness.runner import config, layout
from harness.runner.config import Preset
from harness.sandbox import Sandbox

HEADS = ("backbone", "compared", "requests", "replies differ", "95% interval", "verdicts differ", "95% interval")

#: A reply, and whether it is right.
Answer = tuple[str, bool]


async def measure(preset: Preset, requests: int) -> list[list[str]]:
    """Return the rows of the table, two a backbone: alone and again, alone and loaded."""
    declared = config.backbones(preset)
    backbones = {key: declared[key] for key in preset.backbones}
    places = config.servers(preset, backbones)
    tests = [read(layout.manifest(preset.name, key), layout.items(preset.name, key)).test for key in preset.benchmarks]
    items = [item for item in chain.from_iterable(zip_longest(*tests)) if item is not None][:requests]
    rows = []
    async with Sandbox() as sandbox, MathVerifier() as verifier:
        tools = Tools(sandbox, verifier)
        # One after the other, so that "one at a time" is true of a server that has several backbones.
        for key, backbone in backbones.items():
            limits = (1, 1, places[key].max_in_flight)
            alone, again, loaded = [await _ask(backbone, places[key], items, tools, limit) for limit in limits]
            rows.append([key, "alone, again", *_difference_cells(alone, again)])
            rows.append([key, "alone, all at once", *_difference_cells(alone, loaded)])
    return rows


async def _ask(backbone: Backbone, place: Endpoint, items: Sequence[Item], tools: Tools, limit: int) -> list[Answer]:
    slots, progress = asyncio.Semaphore(limit), tqdm(total=len(items), desc=f"{backbone.key}, {limit} at once")

    async def answer(client: openai.AsyncOpenAI, item: Item) -> Answer:
        grader = benchmark(item.benchmark)
        request = Request(backbone.model, backbone.revision, question_prompt("", grader.output_rules, item))
        async with slots:
            reply = await client.chat.completions.create(
                model=place.served_name or backbone.model,
                messages=[message._asdict() for message in request.messages],  # type: ignore[misc]
                temperature=0.0,
                seed=0,
                max_tokens=request.max_tokens,
            )
        text = reply.choices[0].message.content or ""
        progress.update()
        return text, (await grader.grade(item, text, tools)).correct

    async with openai.AsyncOpenAI(api_key=place.api_key, base_url=place.url) as client:
        return await gather(answer(client, item) for item in items)


def _difference_cells(first: Sequence[Answer], second: Sequence[Answer]) -> list[str]:
    """Return the cells of a row: number of answers, then how many replies and how many verdicts differ.

    Each of the two numbers has its Wilson interval.
    """
    cells = [str(len(first))]
    for texts_or_verdicts in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True):
        number = sum(a != b for a, b in zip(*texts_or_verdicts, strict=True))
        low, high = wilson(number, len(first))
        cells += [f"{number} ({100 * number / len(first):.1f}%)", f"{100 * low:.1f}% to {100 * high:.1f}%"]
    return cells


def main(
    name: PresetName,
    requests: Annotated[int, typer.Option(help="To each backbone; at most all test questions.", min=1)] = 200,
    overrides: Overrides = None,
) -> None:
    """Ask the servers of a preset the same again, and count replies and verdicts that differ."""
    preset = preset_of(name, overrides)
    if preset.simulated:
        raise UserError(f"preset {name} has simulated backbones, whose replies are functions of the request")
    text = "\n".join(["# Flip rate at temperature 0", "", *grid(HEADS, asyncio.run(measure(preset, requests)), left=7)])
    write_atomically(layout.REPORTS / name / "flip_rate.md", text)
    typer.echo(text)


if __name__ == "__main__":
    from cli.main import main as run

    run(lambda: typer.run(main))

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
from playwright.sync_api import Page

from tests.harness.llm.logged import calls_of
from tests.site.explorer.odd import (
    show,
)

GATES = {"retrieve", "write", "halt"}
UNDRAWN = {"agents", "short_cut", "ensemble"}


def log_of(cell: Path) -> dict[str, list[str]]:
    """The texts of every call of a log, the reply last."""
    return {
        key: [*(message["content"] for message in row["request"]["messages"]), row["reply"]]
        for key, row in calls_of(cell / "calls.sqlite").items()
    }


def test_every_text_and_probability_of_a_run_is_that_of_its_tables(page: Page, run_folder: Path, site: Path) -> None:
    show(page, site / "site")
    collect = """async name => {
      const { cell, items, record } = GMR.explorer;
      const of = await cell(name);
      const found = [];
      for (const { id } of await items(of)) {
        const one = await record(of, id);
        const calls = [...one.steps.flatMap((step) => step.calls), ...one.final];
        const chosen = one.steps.flatMap((step) => [step.role, step.backbone, ...step.choices]);
        found.push({
          id,
          answer: one.text(one.answer),
          said: calls.map((call) => [...call.messages.map((m) => one.text(m[1])), one.text(call.reply)]),
          chosen: chosen.filter((choice) => choice).map((one) => [one.name, one.slot, one.choice, one.probability]),
        });
      }
      return found;
    }"""
    cells = sorted((run_folder / "results/smoke/cells").glob("*/*/*/seed*"))
    assert {cell.parts[-4] for cell in cells} > {"gmr", "masrouter", "puppeteer", "aflow"}
    for cell in cells:
        method, benchmark, backbone, seed = cell.parts[-4:]
        found = page.evaluate(collect, f"{method}/{benchmark}/{backbone}/{seed.removeprefix('seed')}")
        items, calls, decisions = (
            pq.read_table(cell / f"{name}.parquet").to_pylist() for name in ("items", "calls", "decisions")
        )
        log = log_of(cell)
        assert [(one["id"], one["answer"]) for one in found] == [(row["item_id"], row["text"]) for row in items]
        for one in found:
            assert one["said"] == [log[row["key"]] for row in calls if row["item_id"] == one["id"]]
            drawn = [
                row
                for row in decisions
                if row["item_id"] == one["id"] and row["name"] not in ("retrieve", "write", "halt")
            ]
            assert sorted((name, slot, choice) for name, slot, choice, _ in one["chosen"]) == sorted(
                (row["name"], row["slot"], row["choice"]) for row in drawn
            )
            probabilities = sorted(probability for *_, probability in one["chosen"] if probability is not None)
            assert probabilities == sorted(math.exp(row["log_prob"]) for row in drawn if row["name"] not in UNDRAWN)

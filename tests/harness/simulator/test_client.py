"""Simulated backbones give the same results in process and over HTTP, even with server faults."""

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.llm.endpoints import ENDPOINTS, Endpoint
from harness.runner import cell
from harness.runner.plan import plan
from harness.runner.results import SIMULATED_WARNING, TABLES
from tests.faults import Simulation
from tests.harness.llm.serving import served_at
from tests.small_run import GMR, SINGLE, prepare_questions, results, smoke


@pytest.mark.usefixtures("no_waiting")
async def test_a_cell_has_the_same_bytes_through_delays_and_faults(folder: Path) -> None:
    prepare_questions()
    planned = plan(smoke(), GMR)
    await cell.run(planned)
    in_process = results(folder, str(planned.folder))
    shutil.rmtree(planned.folder)
    async with served_at(Simulation(planned.in_process, share=0.3, latency_s=0.01, hang_s=0.2)) as url:
        there = dict.fromkeys(planned.cell.backbones, Endpoint(url=url))
        await cell.run(dataclasses.replace(planned, endpoints=there, in_process=None))
    assert results(folder, str(planned.folder)) == in_process
    assert "MalformedReplyError: " in (planned.folder / "attempts.jsonl").read_text()


@pytest.mark.parametrize(
    ("left_out", "weights", "revision"),
    [(("owned_by",), None, None), (("owned_by", "root"), "random", "0123abc")],
)
async def test_whatever_names_a_simulation_or_stands_in_for_a_model_marks_a_run(
    left_out: Sequence[str], weights: str | None, revision: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_questions()
    planned = plan(smoke(), SINGLE)
    simulation, original = planned.in_process, planned.cell.backbones[SINGLE.backbone].model
    monkeypatch.setattr(simulation, "revision", revision or simulation.revision)
    monkeypatch.setenv(ENDPOINTS, "endpoints.yaml")
    async with served_at(Simulation(simulation, without=left_out)) as url:
        Path("endpoints.yaml").write_text(f"{SINGLE.backbone}: {{url: {url!r}, served_name: {original}}}")
        asked = plan(smoke(endpoints="served", weights=weights), SINGLE)
        made = await cell.run(asked)
    assert made["simulated"]
    for name in TABLES:
        assert pq.read_schema(asked.folder / f"{name}.parquet").metadata[b"simulated"].decode() == SIMULATED_WARNING

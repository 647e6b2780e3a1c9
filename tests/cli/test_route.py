"""A trained router rebuilt from its checkpoint, refused where it does not fit; and what ``gmr route`` says of it."""

import asyncio
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.route import Restored, restore
from gmr.config import Config, pool_of
from harness.agents.trajectory import Trajectory
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import read
from harness.database import Cache
from harness.errors import UserError
from harness.llm.encoder import Embeddings
from harness.llm.request import Reply
from harness.runner import config, layout
from harness.runner.method import build
from harness.training.loop import checkpoint
from tests.baselines.puppeteer.fixtures import NoPrograms
from tests.cli.trained import BACKBONES, REPLY, TRAINED, VARIANT, Backbones, setting, write
from tests.command import gmr
from tests.fake_encoder import FakeEncoder
from tests.harness.llm.logged import calls_of
from tests.scripted import ScriptedClient, context


def route(*words: str, at: tuple[str, ...] = ("--benchmark", "gsm_hard")) -> str:
    """Return what the command prints; its error is raised."""
    return gmr("route", "--preset", "smoke", *at, *words).stdout


def document(*words: str) -> dict[str, Any]:
    return json.loads(route(*words, "--json"))  # type: ignore[no-any-return]


def restored(path: Path, **how: bool) -> Restored:
    return restore(path, lambda name, backbones: config.preset(name, {"backbones": list(backbones)}), **how)


def questions() -> list[Item]:
    return read(layout.manifest("smoke", "gsm_hard"), layout.items("smoke", "gsm_hard")).test


def test_the_first_decision_is_what_the_policy_says_and_writes_nothing(trained: Path, endpoint: Backbones) -> None:
    before = sorted(Path().rglob("*"))
    found = document("How many?")["first_decision"]
    router = restored(trained).router
    of_roles, given_it = router.policy.first_probabilities(FakeEncoder().encode("How many?").vector)
    roles = {role.key: p for role, p in zip(router.pool.roles, of_roles, strict=True)}
    shares = {one["key"]: one["probability"] for one in found["roles"]}
    assert shares == pytest.approx(roles)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert sum(shares.values()) == pytest.approx(1)
    assert {one["key"]: one["probability"] for one in found["backbones"]} == pytest.approx(
        dict(zip(BACKBONES, given_it, strict=True))
    )
    said = route("--item", questions()[0].id)
    assert said.startswith("gmr for gsm_hard, trained on SIMULATED backbones: preset smoke, seed 0, 2 epochs\n")
    assert 0 < said.index("Step 1, role") < said.index("Step 1, backbone of ")
    assert endpoint.asked == 0
    assert sorted(Path().rglob("*")) == before


def test_a_trajectory_is_the_one_that_the_router_walks_at_test_time(trained: Path, endpoint: Backbones) -> None:
    depths = set()
    for item in questions()[:4]:
        walk = document("--item", item.id, "--run")["walk"]
        trajectory = _walked_by_hand(item)
        depths.add(trajectory.depth)
        assert [one["call"]["key"] for step in walk["record"]["steps"] for one in step["calls"]] == [
            one.key for one in trajectory.calls if one.is_step
        ]
        assert _probabilities(walk) == {
            (one.step, one.name, one.slot): (one.choice, pytest.approx(math.exp(one.log_prob)))
            for one in trajectory.decisions
        }
        assert walk["record"]["totals"]["cost_total"] == pytest.approx(trajectory.cost_total)
        assert (walk["record"]["answer"], walk["record"]["item"]["gold"]) == (REPLY, item.gold)
        assert walk["record"]["verdict"]["correct"] == (float(item.gold) == 12)
    assert len(depths) > 1


def _walked_by_hand(item: Item) -> Trajectory:
    """Return the trajectory of the same router with a scripted client and without the command."""
    router = build("gmr", setting(), VARIANT)
    router.load(checkpoint.load(TRAINED))
    client, rules = ScriptedClient(Reply(REPLY, 100, 10, "stop", "m")), benchmark("gsm_hard").output_rules

    async def walked() -> Trajectory:
        async with Embeddings(FakeEncoder(), Cache(Path("by-hand.sqlite"))) as embeddings:
            equipment = {"backbones": setting().pool, "code_tools": NoPrograms(), "embeddings": embeddings}
            its_context = context(item, client, rules, **equipment)
            return its_context.close(await router.solve(item, its_context))

    return asyncio.run(walked())


def _probabilities(walk: Mapping[str, Any]) -> dict[tuple[int, str, int], tuple[str, float]]:
    """Return the decisions of a document as a context records them, with the probability of each."""
    probabilities: dict[tuple[int, str, int], tuple[str, float]] = {}
    for step in walk["record"]["steps"]:
        number = step["number"]
        for name in ("role", "backbone"):
            probabilities[number, name, 0] = (step[name]["choice"], step[name]["probability"])
        probabilities |= {(number, one["name"], one["slot"]): (one["choice"], 1.0) for one in step["choices"]}
        gates = {("write", 0): step["written"], ("halt", 0): step["halted"]}
        gates |= {("retrieve", slot): gate for slot, gate in enumerate(step["retrieved"].values())}
        for (name, slot), gate in gates.items():
            p = gate["probability"]
            if p is not None:
                probabilities[number, name, slot] = ("yes", p) if gate["is_open"] else ("no", 1 - p)
    return probabilities


def test_greedy_is_the_most_probable_everywhere(trained: Path) -> None:
    walk = document("--item", questions()[0].id, "--run", "--greedy")["walk"]
    assert walk["decode"] == "greedy"
    for step in walk["record"]["steps"]:
        gates = [step["written"], step["halted"], *step["retrieved"].values()]
        drawn = [gate for gate in gates if gate["probability"] is not None]
        assert drawn
        assert all(gate["is_open"] == (gate["probability"] > 0.5) for gate in drawn)
        assert step["backbone"]["probability"] >= 0.5


def test_nothing_is_asked_twice_but_failed_calls_and_no_log_of_a_cell_is_touched(
    trained: Path, endpoint: Backbones
) -> None:
    before = sorted(trained.parent.iterdir())
    endpoint.status = 400
    failed = route("How many are four and eight?", "--run")
    assert "(the call failed: " in failed
    assert "no room left" in failed
    endpoint.status, endpoint.asked = 200, 0
    first = route("How many are four and eight?", "--run")
    asked = endpoint.asked
    assert asked > 1
    assert route("How many are four and eight?", "--run") == first
    assert endpoint.asked == asked
    assert len(calls_of(Path("results/smoke/route/gsm_hard/calls.sqlite"))) == asked
    assert sorted(trained.parent.iterdir()) == before
    assert first.startswith("SIMULATED BACKBONES")
    assert "know the prepared questions alone" in first
    assert "verdict" not in first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give either a question in quotes or --item"),
        (["?", "--item", "0"], "give either a question in quotes or --item"),
        (["?", "--greedy"], "--greedy says how --run decides"),
        (["?", "--checkpoint", "x"], "leave --benchmark, --method and --seed out"),
        ([" \n"], "the question is blank"),
        (["--item", "no"], "gsm_hard has no question 'no' among its 160; one that it has is '"),
        (["?", "--method", "gmr_no_haltin"], "did you mean 'gmr_no_halting'"),
        (["?", "--seed", "7"], r"gmr gsm_hard pool seed 7 of preset smoke is not finished; make it with `snakemake"),
    ],
)
def test_a_mistake_is_refused(trained: Path, words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        route(*words)
    assert "\n" not in str(refusal.value)


def test_a_router_may_be_named_by_its_file_and_brings_its_own_pool_in_its_own_order(trained: Path) -> None:
    assert "Step 1, role" in route("?", at=("--checkpoint", str(trained)))
    with pytest.raises(UserError, match=r"name the --benchmark that the router was trained on, or its file by --check"):
        route("?", at=())
    rebuilt = restored(trained)
    assert [one.key for one in rebuilt.router.pool.backbones] == list(BACKBONES) == list(rebuilt.plan.backbones)
    assert rebuilt.router.config == Config(**VARIANT)
    roles = pool_of(Config(**VARIANT), dataclasses.replace(setting(), seed=100)).to_facts()["roles"]
    other = restored(write(trained, method="full_history", training_seed=100, roles=roles))
    assert (other.plan.seed, other.plan.cell.seed) == (100, 0)
    layout.manifest("smoke", "gsm_hard").unlink()
    with pytest.raises(UserError, match=r"gsm_hard\.json cannot be read .*make it with"):
        route("?")


def test_another_processor_is_no_other_encoder(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(trained, encoder="name-0123-fp32-4567-transformers5.1.0-torch2.9.0-avx512")
    monkeypatch.setattr(FakeEncoder, "identity", "name-0123-fp32-89ab-transformers5.2.0-torch2.13.0+cpu-avx2")
    assert restored(path).plan.setting.pool == setting().pool
    monkeypatch.setattr(FakeEncoder, "identity", "name-4567-fp32-4567-torch2.9.0-avx512")
    with pytest.raises(UserError, match=r"embeddings of name-0123, config/encoder\.yaml declares name-4567;"):
        restored(path)


ROLES = pool_of(Config(**VARIANT), setting()).to_facts()["roles"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": ROLES[::-1]}, "where its roles now have"),
        ({"backbones": [["gpt-2", "Old."]]}, "unknown backbone 'gpt-2'"),
        ({"backbones": [[key, "Cheap."] for key in BACKBONES]}, "the profile of 'qwen-2.5-14B' is not the one"),
        ({"module": "baselines.other", "method": "other"}, "holds no router of Gated-Memory Routing but other"),
        ({"config": {**VARIANT, "write_gate": False}}, "trained with other modules"),
    ],
)
def test_a_router_for_other_surroundings_is_refused(trained: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        restored(write(trained, **changes))
    assert "\n" not in str(refusal.value)

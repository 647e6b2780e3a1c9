"""``gmr route`` with a router from a checkpoint, and an encoder and backbones that need no model."""

import asyncio
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.agents.trajectory import Context, Trajectory
from harness.benchmarks import benchmark
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import read
from harness.errors import UserError
from harness.llm.database import Cache
from harness.llm.embeddings import Embeddings
from harness.llm.request import Reply
from harness.runner import layout
from harness.runner.method import build
from harness.training import checkpoint
from tests.fake_encoder import FakeEncoder
from tests.harness.llm.logged import calls_of
from tests.scripted import ScriptedClient
from tests.workflow.trained import BACKBONES, REPLY, TRAINED, VARIANT, Backbones, setting
from workflow.cli import app
from workflow.trained_router import restore


def gmr(*words: str) -> str:
    """What a command prints; its error is raised."""
    return CliRunner().invoke(app, ["route", "--preset", "smoke", *words], catch_exceptions=False).stdout


def document(*words: str) -> dict[str, Any]:
    return json.loads(gmr(*words, "--json"))  # type: ignore[no-any-return]


def questions() -> list[Item]:
    return read(layout.manifest("smoke", "gsm_hard"), layout.items("smoke", "gsm_hard")).test


def test_the_outlook_is_what_the_policy_says(trained: Path, endpoint: Backbones) -> None:
    found = document("How many?")["outlook"]
    router = restore(trained).router
    state = router.policy.begin(FakeEncoder().encode("How many?").vector)
    roles = {role.key: p for role, p in zip(router.pool.roles, router.policy.roles(state), strict=True)}
    assert {one["key"]: one["probability"] for one in found["roles"]} == pytest.approx(roles)
    shares = [one["probability"] for one in found["roles"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    first = [role.key for role in router.pool.roles].index(found["roles"][0]["key"])
    given_it = router.policy.backbones(state, first)
    assert [(one["key"], one["probability"]) for one in found["backbones"]] == [
        (key, pytest.approx(p)) for key, p in zip(BACKBONES, given_it, strict=True)
    ]
    assert endpoint.asked == 0


def test_the_outlook_is_printed_and_writes_nothing(trained: Path) -> None:
    before = sorted(Path().rglob("*"))
    said = gmr("--item", questions()[0].id)
    assert sorted(Path().rglob("*")) == before
    assert said.startswith("gmr for gsm_hard, trained on SIMULATED backbones: preset smoke, seed 0, 2 epochs\n")
    assert said.index("Step 1, role") < said.index("Step 1, backbone of ")
    assert said.endswith("No model was asked. Later steps depend on what the models reply: --run asks them.\n")


def test_a_trajectory_is_the_one_that_the_router_walks_at_test_time(trained: Path, endpoint: Backbones) -> None:
    depths = set()
    for item in questions()[:4]:
        found = document("--item", item.id, "--run")["walk"]
        trajectory = _walked_by_hand(item)
        depths.add(trajectory.depth)
        assert [one["call"]["key"] for step in found["record"]["steps"] for one in step["calls"]] == [
            one.key for one in trajectory.calls if one.is_step
        ]
        assert _probabilities(found) == {
            (one.step, one.name, one.slot): (one.choice, pytest.approx(math.exp(one.log_prob)))
            for one in trajectory.decisions
        }
        assert found["record"]["totals"]["cost_total"] == pytest.approx(trajectory.cost_total)
        assert found["record"]["answer"] == REPLY
        assert found["record"]["item"]["gold"] == item.gold
        assert found["record"]["verdict"]["answer"] == "12"
        assert found["record"]["verdict"]["correct"] == (float(item.gold) == 12)
    assert len(depths) > 1


def _walked_by_hand(item: Item, **changes: Any) -> Trajectory:
    """The trajectory of the same router with a scripted client and without the command."""
    router = build("gmr", setting(), {**VARIANT, **changes})
    router.load(checkpoint.load(TRAINED))
    client, rules = ScriptedClient(Reply(REPLY, 100, 10, "stop", "m")), benchmark("gsm_hard").output_rules

    async def walked() -> Trajectory:
        async with Embeddings(FakeEncoder(), Cache(Path("by-hand.sqlite"))) as embeddings:
            equipment: dict[str, Any] = {"code_tools": _Idle(), "embeddings": embeddings, "extract": None}
            context = Context(item, client, setting().pool, rules, **equipment)  # type: ignore[arg-type]
            return context.close(await router.solve(item, context))

    return asyncio.run(walked())


class _Idle:
    """A code_tools for texts without programs."""

    async def value(self, text: str) -> None:
        return None


def _probabilities(found: Mapping[str, Any]) -> dict[tuple[int, str, int], tuple[str, float]]:
    """The decisions of a document as a context records them: each with the probability of what was chosen."""
    made: dict[tuple[int, str, int], tuple[str, float]] = {}
    for step in found["record"]["steps"]:
        number = step["number"]
        for name in ("role", "backbone"):
            made[number, name, 0] = (step[name]["choice"], step[name]["probability"])
        gates = {("write", 0): step["written"], ("halt", 0): step["halted"]}
        gates |= {("retrieve", slot): gate for slot, gate in enumerate(step["retrieved"].values())}
        for (name, slot), gate in gates.items():
            p = gate["probability"]
            if p is not None:
                made[number, name, slot] = ("yes", p) if gate["is_open"] else ("no", 1 - p)
    return made


def test_greedy_is_the_most_probable_everywhere(trained: Path) -> None:
    found = document("--item", questions()[0].id, "--run", "--greedy")["walk"]
    assert found["decode"] == "greedy"
    for step in found["record"]["steps"]:
        gates = [step["written"], step["halted"], *step["retrieved"].values()]
        drawn = [gate for gate in gates if gate["probability"] is not None]
        assert drawn
        assert all(gate["is_open"] == (gate["probability"] > 0.5) for gate in drawn)
        assert step["backbone"]["probability"] >= 0.5
    trajectory = _walked_by_hand(questions()[0], decode="greedy")
    assert [step["role"]["choice"] for step in found["record"]["steps"]] == [
        one.choice for one in trajectory.decisions if one.name == "role"
    ]


def test_nothing_is_asked_twice_and_no_log_of_a_cell_is_touched(trained: Path, endpoint: Backbones) -> None:
    first = gmr("How many are four and eight?", "--run")
    asked = endpoint.asked
    assert asked > 1
    assert gmr("How many are four and eight?", "--run") == first
    assert endpoint.asked == asked
    assert len(calls_of(Path("results/smoke/route/gsm_hard/calls.sqlite"))) == asked
    assert sorted(path.name for path in trained.parent.iterdir()) == [trained.name]
    assert first.startswith("SIMULATED BACKBONES")
    assert "They know the prepared questions alone" in first
    assert "verdict" not in first


def test_a_failed_call_is_shown_and_asked_again(trained: Path, endpoint: Backbones) -> None:
    endpoint.status = 400
    failed = gmr("--item", questions()[0].id, "--run")
    assert "(the call failed: " in failed
    assert "no room left" in failed
    assert "wrong (call_failed, " in failed
    endpoint.status = 200
    assert "failed" not in gmr("--item", questions()[0].id, "--run")


def test_a_checkpoint_can_be_named_and_says_whose_it_is(trained: Path) -> None:
    found = CliRunner().invoke(app, ["route", "How many?", "--checkpoint", str(trained)], catch_exceptions=False).stdout
    assert found == gmr("How many?")
    assert f"preset smoke, seed 0, 2 epochs\n{trained}\n" in found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give either a question in quotes or --item"),
        (["?", "--item", "0"], "give either a question in quotes or --item"),
        (["?", "--greedy"], "--greedy says how --run decides"),
        (["?", "--checkpoint", "x", "--seed", "0"], "leave --benchmark, --method and --seed out"),
        ([" \n"], "the question is blank"),
        (["--item", "no"], "has no question 'no' among its 160; one that it has is '"),
    ],
)
def test_a_mistake_is_refused(trained: Path, words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        gmr(*words)
    assert "\n" not in str(refusal.value)


def test_questions_that_are_not_prepared_are_named(trained: Path) -> None:
    layout.manifest("smoke", "gsm_hard").unlink()
    with pytest.raises(UserError, match=r"gsm_hard\.json cannot be read .*make it with"):
        gmr("--item", "0")
    assert "Step 1, role" in gmr("How many?")


def test_equal_questions_meet_equal_chance(trained: Path) -> None:
    digest = hashlib.sha256(b"How many?").hexdigest()[:12]
    item = Item(id=f"own/{digest}", benchmark="gsm_hard", question="How many?", gold="")
    found = document("How many?", "--run")["walk"]
    assert [step["calls"][0]["call"]["key"] for step in found["record"]["steps"]] == [
        one.key for one in _walked_by_hand(item).calls if one.purpose == "act"
    ]

"""The whole search: rounds, what goes wrong in them, going on after a kill, and the workflow that answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from baselines.aflow import operators
from baselines.aflow.method import AFlow, Config, build
from baselines.aflow.optimizer import FAILED
from baselines.aflow.search import Round, candidates, probabilities, scored
from harness.agents import rng
from harness.agents.results import Answered
from harness.agents.sampling import sample
from harness.agents.trajectory import Trajectory
from harness.benchmarks.items import Status, Verdict
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.runner.method import build as build_method
from harness.training import checkpoint
from harness.training.checkpoint import Checkpoint
from tests import scripted
from tests.baselines.aflow.made import (
    ITEM,
    Bench,
    Model,
    breaking,
    is_proposal,
    questions,
    text_of,
    told,
    training,
)
from tests.scripted import setting

QUESTIONS = questions(8)
TOLD = ("count", "guess", "add", "check", "list", "draw", "name")


def level(request: Request) -> int:
    """How many questions of eight a prompt gets right: as many as its instruction says."""
    found = [word for word in text_of(request).partition("\n\n")[0].split() if word.isdigit()]
    return int(found[0]) if found else 2


def answer(request: Request) -> str:
    number = int(text_of(request).rpartition("Question ")[2].rstrip("?"))
    return f"right {number}" if number < level(request) else f"wrong {number}"


def searching(*proposals: str | Reply) -> Model:
    """A model that proposes these edits in turn, the last again and again, and solves as it is told."""
    left = list(proposals)

    def rule(request: Request) -> str | Reply:
        if is_proposal(request):
            return left.pop(0) if len(left) > 1 else left[0]
        return answer(request)

    return Model(rule)


def levels(*wanted: int) -> list[str]:
    return [told(f"{word} {number}") for word, number in zip(TOLD, wanted, strict=False)]


async def searched(
    folder: Path, model: Model, max_epochs: int | None = None, seed: int = 7, limit: float = 1.0, **config: Any
) -> AFlow:
    method = build(setting(max_epochs=max_epochs), Config(**config))
    its = training(folder, model, QUESTIONS, seed, limit)
    await method.fit(its)
    its.finish()
    return method


def facts(folder: Path) -> dict[str, Any]:
    return dict(checkpoint.load(folder / "trained.safetensors").facts)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# A search


async def test_the_best_round_answers_and_every_round_is_kept(tmp_path: Path) -> None:
    model = searching(*levels(4, 6, 3))
    method = await searched(tmp_path, model, max_rounds=3)
    kept = facts(tmp_path)
    scores = {one["round"]: one["score"] for one in kept["search"]}
    assert list(scores) == [1, 2, 3, 4]
    assert scores[1] == 25.0
    assert sorted(scores.values()) == [25.0, 37.5, 50.0, 75.0]
    assert scores[kept["best"]] == 75.0
    assert method.workflow.nodes[0].instruction == "guess 6"
    for one in kept["search"][1:]:
        assert one["success"] == (one["score"] > scores[one["parent"]])
        assert (one["status"], one["calls"], one["proposals"]) == ("scored", 8, 1)
        assert one["cost"] == pytest.approx(8 * (100 * 0.003 + 10 * 0.010) / 1e6)
        assert one["proposal_cost"] == pytest.approx((100 * 0.003 + 10 * 0.010) / 1e6)
    assert (kept["optimizer"], kept["questions"], kept["converged"]) == ("small", 8, False)


async def test_the_ledger_of_the_training_holds_the_whole_search(tmp_path: Path) -> None:
    await searched(tmp_path, searching(*levels(4, 6)), max_rounds=2)
    calls = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    kept = facts(tmp_path)["search"]
    assert sum(row["cost"] for row in calls) == pytest.approx(sum(one["cost"] + one["proposal_cost"] for one in kept))
    assert [(row["epoch"], row["rollout"]) for row in calls if row["item_id"] == "optimizer"] == [(2, 0), (3, 0)]
    log = pq.read_table(tmp_path / "training.parquet").to_pylist()
    of_three = {row["measure"]: row["value"] for row in log if row["epoch"] == 3}
    assert of_three["score"] == kept[2]["score"] == 100 * of_three["accuracy"]
    assert of_three["best"] == max(one["score"] for one in kept)
    assert of_three["parent"] == kept[2]["parent"]


async def test_validation_is_greedy_and_sees_every_training_question(tmp_path: Path) -> None:
    model = searching(*levels(4))
    await searched(tmp_path, model, max_rounds=1)
    solving = [request for request in model.requests if not is_proposal(request)]
    assert all((request.temperature, request.draw) == (0.0, 0) for request in solving)
    assert sorted(text_of(request).rpartition("Question ")[2] for request in solving) == sorted(
        [f"{number}?" for number in range(8)] * 2
    )


async def test_the_first_round_can_win_and_is_the_earliest_of_equals(tmp_path: Path) -> None:
    method = await searched(tmp_path, searching(*levels(1, 2, 0)), max_rounds=3)
    assert facts(tmp_path)["best"] == 1
    assert method.workflow.nodes[0].instruction == ""


async def test_an_equal_score_is_no_success(tmp_path: Path) -> None:
    await searched(tmp_path, searching(*levels(2, 3)), max_rounds=2, sample=1)
    assert [(one["score"], one["success"]) for one in facts(tmp_path)["search"]] == [
        (25.0, None),
        (25.0, False),
        (37.5, True),
    ]


async def test_up_to_three_failures_of_the_parent_are_shown(tmp_path: Path) -> None:
    model = searching(*levels(6, 7))
    await searched(tmp_path, model, max_rounds=2)
    asked = [text_of(request) for request in model.requests if is_proposal(request)]
    assert asked[0].count("A question that the workflow got wrong") == 3
    wrong = [number for number in range(8) if f"Question {number}?" in asked[0]]
    assert len(wrong) == 3
    assert all(number >= 2 for number in wrong)
    assert all(f"Right answer:\nright {number}\n" in asked[0] for number in wrong)
    assert all(f"Output of the workflow:\nwrong {number}\n" in asked[0] for number in wrong)


async def test_experience_is_that_of_the_parent(tmp_path: Path) -> None:
    model = searching(*levels(3, 4, 5, 6, 7))
    await searched(tmp_path, model, max_rounds=5)
    kept = facts(tmp_path)["search"]
    asked = [text_of(request) for request in model.requests if is_proposal(request)]
    for one, prompt in zip(kept[1:], asked, strict=True):
        siblings = {other["modification"] for other in kept[1 : one["round"] - 1] if other["parent"] == one["parent"]}
        others = {other["modification"] for other in kept[1:]} - siblings
        listed = prompt.partition("each of them forbidden")[2].partition("A question that")[0]
        assert all(words in listed for words in siblings)
        assert not any(words in listed for words in others)


async def test_it_stops_when_the_best_rounds_no_longer_change(tmp_path: Path) -> None:
    await searched(tmp_path, searching("Not a proposal."), max_rounds=7)
    assert len(facts(tmp_path)["search"]) == 8
    same = [told(f"{word}") for word in (*TOLD, "sum", "think", "read", "look", "write")]
    await searched(tmp_path / "same", searching(*same), max_rounds=20)
    kept = facts(tmp_path / "same")
    assert (len(kept["search"]), kept["converged"]) == (8, True)


@pytest.mark.parametrize(("max_epochs", "rounds"), [(0, 0), (1, 1), (2, 2), (9, 3), (None, 3)])
async def test_rounds_are_passes_over_the_training_questions(
    tmp_path: Path, max_epochs: int | None, rounds: int
) -> None:
    method = await searched(tmp_path, searching(*levels(4, 6)), max_epochs, max_rounds=2)
    kept = facts(tmp_path)
    assert len(kept["search"]) == rounds
    assert (kept["best"] is None) == (rounds == 0)
    assert method.workflow.ids == ("node_1",)


async def test_seeds_search_differently(tmp_path: Path) -> None:
    """With equal scores parents are drawn evenly, so that seeds part."""
    parents = set()
    for seed in range(3):
        same = [told(word) for word in (*TOLD, "sum")]
        await searched(tmp_path / str(seed), searching(*same), seed=seed, max_rounds=4)
        parents.add(tuple(one["parent"] for one in facts(tmp_path / str(seed))["search"]))
    assert len(parents) > 1


async def test_a_parent_is_drawn_for_every_attempt_from_the_scores_of_the_rounds_before(tmp_path: Path) -> None:
    """As in the released search: after a repetition or an unreadable reply, the draw and so the parent are new."""
    proposals = [*levels(3), "Hm.", *levels(4, 4, 4), *levels(4, 5), "Hm.", told("draw 6"), "Hm.", "Hm."]
    others = 0
    for seed in range(3):
        model = searching(*proposals)
        await searched(tmp_path / str(seed), model, max_rounds=7, seed=seed, patience=20)
        kept = [Round.from_facts(one) for one in facts(tmp_path / str(seed))["search"]]
        asked = [text_of(request) for request in model.requests if is_proposal(request)]
        for one in kept[1:]:
            drawn_from = candidates(kept[: one.number - 1], 4)
            shares = probabilities([score for score, _ in scored(drawn_from)], 0.3, 0.2)
            numbers = [rng.uniform("parent", str(seed), str(one.number), str(at)) for at in range(one.proposals)]
            parents = [drawn_from[sample(shares, number)] for number in numbers]
            for parent in parents:
                assert f"with a score of {parent.score:.2f} %:" in asked.pop(0)
            assert one.parent == parents[-1].number
            others += len(set(parents)) > 1
        assert asked == []
    assert others > 1


# What goes wrong


async def test_a_round_without_a_proposal_is_shown_and_the_search_goes_on(tmp_path: Path) -> None:
    await searched(tmp_path, searching("Hm.", "Hm.", *levels(4)), max_rounds=2)
    _, failed, scored = facts(tmp_path)["search"]
    assert (failed["status"], failed["score"], failed["workflow"]) == ("no_proposal", None, None)
    assert (failed["proposals"], failed["calls"]) == (2, 0)
    assert failed["reason"] == "the reply is no JSON object"
    assert scored["status"] == "scored"
    assert scored["parent"] == 1


async def test_a_duplicate_edit_costs_the_round_after_three_asks(tmp_path: Path) -> None:
    await searched(tmp_path, searching(told("be brief 2")), max_rounds=2, sample=1)
    *_, again = facts(tmp_path)["search"]
    assert (again["parent"], again["status"], again["proposals"]) == (1, "no_proposal", 3)
    assert again["reason"] == "round 2 tried an edit of this description"


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("error", [UserError("endpoint gone"), ZeroDivisionError("by zero")])
async def test_a_round_that_breaks_down_ends_the_search_and_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: Exception
) -> None:
    """Whatever it was: nothing of the round is saved, and resumed the search ends in the same bytes."""
    whole, broken = operators.Interpreter.solve, ("'instruction': ''", "count 4")[number - 1]

    async def solve(self: Any, item: Any, context: Any) -> str:
        if item.id == "q5" and broken in str(self._workflow.to_json()):
            raise error
        return await whole(self, item, context)

    with monkeypatch.context() as patched:
        patched.setattr(operators.Interpreter, "solve", solve)
        with pytest.raises(type(error), match=str(error)):
            await searched(tmp_path / "parts", searching(*levels(4, 6)), max_rounds=2)
    assert sorted({name.partition(".")[0] for name in content(tmp_path / "parts")}) == [
        f"checkpoints/epoch-{done:02d}" for done in range(number)
    ]
    await searched(tmp_path / "parts", searching(*levels(4, 6)), max_rounds=2)
    await searched(tmp_path / "whole", searching(*levels(4, 6)), max_rounds=2)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


def refusing(model: Model, refused: Callable[[Request], bool], said: str = "no") -> Model:
    """A model whose server refuses some requests for good."""

    def rule(request: Request) -> str | Reply:
        if refused(request):
            return Reply.failed(request.model, said)
        return inner(request)

    inner, model.rule = model.rule, rule
    return model


async def test_a_server_without_response_formats_searches_all_the_same(tmp_path: Path) -> None:
    strict = refusing(searching(*levels(4, 6)), lambda request: request.response_format is not None)
    await searched(tmp_path / "strict", strict, limit=0.0, max_rounds=2)
    await searched(tmp_path / "able", searching(*levels(4, 6)), max_rounds=2)
    found, expected = (facts(tmp_path / name)["search"] for name in ("strict", "able"))
    assert [one["proposals"] for one in found] == [0, 2, 2]
    assert [{**one, "proposals": 0} for one in found] == [{**one, "proposals": 0} for one in expected]
    calls = pq.read_table(tmp_path / "strict" / "training_calls.parquet").to_pylist()
    assert [row["error"] is None for row in calls if row["item_id"] == "optimizer"] == [False, True] * 2


async def test_an_optimizer_that_always_fails_stops_the_cell(tmp_path: Path) -> None:
    """Eight questions, then two attempts of round 2, of which the limit allows one."""
    model = refusing(searching(*levels(4)), is_proposal)
    with pytest.raises(UserError, match=r"2 of 10 attempts failed \(limit 5%\).*retry-errors"):
        await searched(tmp_path, model, limit=0.05)
    assert len(model.asked) == 8 + 2 * 2
    assert not (tmp_path / "checkpoints" / "epoch-02.safetensors").exists()


async def test_a_round_without_a_reply_says_so_whatever_the_server_said(tmp_path: Path) -> None:
    kept = []
    for said in ("no room, req-1", "overloaded, req-2"):
        await searched(tmp_path / said, refusing(searching(*levels(4)), is_proposal, said), max_rounds=1)
        kept.append(facts(tmp_path / said)["search"])
    assert kept[0] == kept[1]
    assert {name: kept[0][1][name] for name in ("status", "reason", "proposals", "proposal_cost", "calls")} == {
        "status": "no_proposal",
        "reason": FAILED,
        "proposals": 4,
        "proposal_cost": 0.0,
        "calls": 0,
    }


@pytest.mark.parametrize("at", [0, 5, 8, 9, 12, 17])
async def test_a_search_that_is_stopped_goes_on_to_the_same_bytes(tmp_path: Path, at: int) -> None:
    """Calls 0 to 7 are round 1, 8 a proposal, 9 to 16 round 2, 17 the next proposal."""
    proposals = levels(4, 6, 3)
    await searched(tmp_path / "whole", searching(*proposals), max_rounds=3)
    with pytest.raises(UserError, match="gone"):
        await searched(tmp_path / "parts", breaking(searching(*proposals), at), max_rounds=3)
    done = max(0, (at - 8) // 9 + 1)
    rest = searching(*proposals[max(0, done - 1) :])
    await searched(tmp_path / "parts", rest, max_rounds=3)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(rest.asked) == 35 - (0 if done == 0 else 9 * done - 1)


async def test_a_finished_search_asks_nothing(tmp_path: Path) -> None:
    await searched(tmp_path, searching(*levels(4)), max_rounds=1)
    before = content(tmp_path)
    model = searching("never")
    method = await searched(tmp_path, model, max_rounds=1)
    assert model.asked == []
    assert method.workflow.nodes[0].instruction == "count 4"
    assert content(tmp_path) == before


# The checkpoint


async def test_a_checkpoint_gives_the_workflow_back(tmp_path: Path) -> None:
    found = await searched(tmp_path, searching(*levels(4, 3)), max_rounds=2)
    loaded = build(setting(), Config())
    loaded.load(checkpoint.load(tmp_path / "trained.safetensors"))
    assert loaded.workflow == found.workflow
    model = Model(answer)
    context = scripted.context(QUESTIONS[3], model, code_tools=Bench())
    assert await loaded.solve(QUESTIONS[3], context) == "right 3"


async def test_a_checkpoint_without_arrays_survives(tmp_path: Path) -> None:
    path = tmp_path / "empty.safetensors"
    checkpoint.save(path, Checkpoint({}, {"search": [], "best": None}))
    found = checkpoint.load(path)
    assert (found.tensors, found.facts) == ({}, {"search": [], "best": None})
    loaded = build(setting(), Config())
    loaded.load(found)
    assert loaded.workflow.ids == ("node_1",)


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        ({}, "'search'"),
        ({"search": [{"round": 1, "workflow": [{}]}], "best": 1}, "inputs is a list"),
        (
            {"search": [{"round": 1, "workflow": [{"id": "a", "operator": "Test", "inputs": []}]}], "best": 1},
            "no operator",
        ),
    ],
)
def test_a_checkpoint_of_something_else_is_one_line(kept: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=f"holds no workflow for gsm_hard .*{reason}.*train the method again"):
        build(setting(), Config()).load(Checkpoint({}, kept))


# Configuration


def test_another_backbone_may_be_the_optimizer(tmp_path: Path) -> None:
    assert build(setting(), Config(optimizer="large"))._optimizer.backbone == "large"
    with pytest.raises(UserError, match=r"optimizer is 'huge'; expected one of small, large; .*`also_asks`"):
        build(setting(), Config(optimizer="huge"))


async def test_the_optimizer_is_asked_and_nobody_else_proposes(tmp_path: Path) -> None:
    model = searching(*levels(4))
    await searched(tmp_path, model, optimizer="large", max_rounds=1)
    assert {(backbone, is_proposal(request)) for backbone, request in model.asked} == {
        ("small", False),
        ("large", True),
    }
    one = facts(tmp_path)["search"][1]
    assert one["proposal_cost"] == pytest.approx((100 * 0.03 + 10 * 0.10) / 1e6)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"optimizer": 3}, "optimizer: 3 should be text"),
        ({"max_rounds": -1}, "max_rounds: -1 should"),
        ({"sample": 0}, "sample: 0 should"),
        ({"patience": True}, "patience: True should"),
        ({"uniform_share": 1.5}, "uniform_share: 1.5 should be less than or equal to 1"),
        ({"sharpness": "0.2"}, "sharpness: '0.2' should"),
        ({"rounds": 2}, "unknown key 'rounds'; did you mean 'max_rounds'"),
    ],
)
def test_a_wrong_setting_is_one_line(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=f"config of baselines.aflow: .*{reason}"):
        build_method("baselines.aflow", setting(), config)


def test_utility_is_being_right() -> None:
    method = build(setting(), Config())
    for correct in (True, False):
        answered = Answered(Trajectory(ITEM, "", (), ()), Verdict(correct, "", Status.GRADED))
        assert method.utility(answered) == float(correct)

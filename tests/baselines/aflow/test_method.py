"""The whole search: rounds, failures, and the selected workflow."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from baselines.aflow.method import AFlow, Config
from baselines.aflow.search import Round, candidates, probabilities, scores
from harness.agents import rng
from harness.agents.trajectory import sample
from harness.benchmarks.items import Item
from harness.errors import UserError
from harness.llm.request import Reply, Request
from harness.scripted import setting
from tests.baselines.aflow.fixtures import Bench, is_proposal, text_of, told
from tests.fixtures import Client, learned, trained

QUESTIONS = [Item(f"q{number}", "toy", f"Question {number}?", f"right {number}") for number in range(8)]
TOLD = ("count", "guess", "add", "check", "list", "draw", "name")


def level(request: Request) -> int:
    """Return how many questions of eight a prompt gets right: as many as its instruction says."""
    numbers = [word for word in text_of(request).partition("\n\n")[0].split() if word.isdigit()]
    return int(numbers[0]) if numbers else 2


def answer(request: Request) -> str:
    number = int(text_of(request).rpartition("Question ")[2].rstrip("?"))
    return f"right {number}" if number < level(request) else f"wrong {number}"


def searching(*proposals: str | Reply) -> Client:
    """Return a model that proposes these edits in turn, the last again and again, and solves as it is told."""
    left = list(proposals)

    def rule(backbone: str, request: Request) -> str | Reply:
        if is_proposal(request):
            return left.pop(0) if len(left) > 1 else left[0]
        return answer(request)

    return Client(rule)


def levels(*wanted: int) -> list[str]:
    return [told(f"{word} {number}") for word, number in zip(TOLD, wanted, strict=False)]


async def searched(folder: Path, model: Client, seed: int = 7, **config: Any) -> tuple[AFlow, list[Round]]:
    method = await trained(AFlow(setting(), Config(**config)), folder, model, QUESTIONS, seed, code_tools=Bench())
    return method, [Round.model_validate(entry) for entry in learned(folder).metadata["search"]]


async def test_the_best_round_answers_and_every_round_is_kept(tmp_path: Path) -> None:
    model = searching(*levels(4, 6, 3))
    method, saved = await searched(tmp_path, model, max_rounds=3)
    assert [(entry.round, entry.status) for entry in saved] == [(number, "scored") for number in (1, 2, 3, 4)]
    assert saved[0].score == 25.0
    assert sorted(scores(saved)) == [25.0, 37.5, 50.0, 75.0]
    assert method.workflow.nodes[0].instruction == "guess 6"
    # Validation is greedy and sees every training question.
    solving = [request for request in model.requests if not is_proposal(request)]
    assert {(request.temperature, request.draw) for request in solving} == {(0.0, 0)}
    prompts = [text_of(request).rpartition("Question ")[2] for request in solving]
    assert sorted(prompts) == sorted([f"{number}?" for number in range(8)] * 4)
    # The ledger of the training holds the whole search.
    calls = pq.read_table(tmp_path / "training_calls.parquet").to_pylist()
    assert sum(row["cost"] for row in calls) == pytest.approx((4 * 8 + 3) * (100 * 0.003 + 10 * 0.010) / 1e6)
    asked_at = [(row["epoch"], row["rollout"]) for row in calls if row["item_id"] == "optimizer"]
    assert asked_at == [(2, 0), (3, 0), (4, 0)]
    solved_in = [row["epoch"] for row in calls if row["item_id"] != "optimizer"]
    assert solved_in == [number for number in (1, 2, 3, 4) for _ in QUESTIONS]
    log = pq.read_table(tmp_path / "training.parquet").to_pylist()
    of_last = {row["measure"]: row["value"] for row in log if row["epoch"] == 4}
    assert of_last["score"] == saved[3].score == 100 * of_last["accuracy"]
    assert (of_last["best"], of_last["parent"]) == (75.0, saved[3].parent)


async def test_a_parent_is_drawn_for_every_attempt_from_the_scores_of_the_rounds_before(tmp_path: Path) -> None:
    """As in the released search: after a repetition or an unreadable reply, the draw and so the parent are new."""
    proposals = [*levels(3), "Hm.", *levels(4, 4, 4), *levels(4, 5), "Hm.", told("draw 6"), "Hm.", "Hm."]
    others = 0
    for seed in range(3):
        model = searching(*proposals)
        _, saved = await searched(tmp_path / str(seed), model, max_rounds=7, seed=seed, patience=20)
        prompts = [text_of(request) for request in model.requests if is_proposal(request)]
        calls = pq.read_table(tmp_path / str(seed) / "training_calls.parquet").to_pylist()
        attempts = Counter(row["epoch"] for row in calls if row["item_id"] == "optimizer")
        for entry in saved[1:]:
            drawn_from = candidates(saved[: entry.round - 1], 4)
            shares = probabilities(scores(drawn_from), 0.3, 0.2)
            numbers = [
                rng.uniform("parent", str(seed), str(entry.round), str(at)) for at in range(attempts[entry.round])
            ]
            parents = [drawn_from[sample(shares, number)] for number in numbers]
            for parent in parents:
                assert f"with a score of {parent.score:.2f} %:" in prompts.pop(0)
            assert entry.parent == parents[-1].round
            others += len(set(parents)) > 1
        assert prompts == []
    assert others > 1


async def test_a_round_without_a_proposal_is_kept_and_of_equal_scores_the_earliest_answers(tmp_path: Path) -> None:
    method, saved = await searched(tmp_path, searching("Hm.", "Hm.", *levels(2)), max_rounds=2, sample=1)
    _, failed, scored = saved
    assert (failed.status, failed.score, failed.workflow) == ("no_proposal", None, None)
    assert failed.reason == "the reply is no JSON object"
    assert (scored.status, scored.parent, scored.score) == ("scored", 1, 25.0)
    # The earliest of equals answers.
    assert method.workflow.nodes[0].instruction == ""


async def test_a_search_ends_once_its_best_scores_stay_the_same(tmp_path: Path) -> None:
    _, saved = await searched(tmp_path, searching(*levels(2, 2, 2, 2)), max_rounds=5, patience=1)
    assert scores(saved) == [25.0] * 4


async def test_another_backbone_may_be_the_optimizer(tmp_path: Path) -> None:
    model = searching(*levels(4))
    await searched(tmp_path, model, optimizer="large", max_rounds=1)
    asked = {(backbone, is_proposal(request)) for backbone, request in model.asked}
    assert asked == {("small", False), ("large", True)}
    with pytest.raises(UserError, match=r"optimizer is 'huge'; expected one of small, large; .*`further_backbones`"):
        AFlow(setting(), Config(optimizer="huge"))

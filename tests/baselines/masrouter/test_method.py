"""Settings, training and test as a whole. Resumption stands in tests/test_learners.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from baselines.masrouter.method import Config, MASRouter, Pool, utility
from harness.agents.roles import by_domain
from harness.errors import UserError
from harness.runner.config import methods
from harness.runner.method import settings_of
from harness.training.loop import CHECKPOINT, checkpoint
from tests.baselines.masrouter.fixtures import BACKBONES, code_tools, config, method, pool
from tests.fixtures import Client, answered_by, attempt, log, questions, right_if, trained
from tests.scripted import setting

ENTRIES = {key: entry for key, entry in methods().items() if entry.module == "baselines.masrouter"}
KEYS = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kappa": {"math": 100}}, "kappa: {'math': 100.0} has no `default`"),
        ({"max_agents": 27}, "max_agents: 27 should be less than or equal to 26"),
        ({"visible_tests": "none"}, "visible_tests: 'none' should be 'first' or 'all'"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        settings_of("baselines.masrouter", {"epochs": {"default": 1}, "kappa": {"default": 200}, **change})
    assert "\n" not in str(caught.value)


def test_the_released_values_are_the_defaults_and_each_variant_changes_what_its_name_says() -> None:
    whole = ENTRIES["masrouter"].config
    made = Config(**whole)
    assert (made.batch, made.max_agents, made.lr, made.vae_weight) == (16, 6, 0.01, 0.001)
    assert made.visible_tests == "first"
    assert [setting(benchmark=key).of_benchmark(made.kappa) for key in KEYS] == [100, 200, 400, 200, 500]
    assert [setting(benchmark=key).epochs(made.epochs) for key in KEYS] == [5, 5, 10, 10, 10]
    changes = {
        "masrouter_untrained": {"epochs": {"default": 0}},
        "masrouter_all_tests": {"visible_tests": "all"},
        "masrouter_kappa_20": {"kappa": {"default": 20}},
    }
    assert set(ENTRIES) == {"masrouter", *changes}
    for key, change in changes.items():
        assert Config(**ENTRIES[key].config) == Config(**{**whole, **change})


async def fitted(folder: Path, client: Client, number: int, made: MASRouter | None = None, **changes: Any) -> MASRouter:
    made = made or method(**changes)
    return await trained(made, folder, client, questions(number, "t"), code_tools=code_tools())


async def test_the_label_is_given_and_the_classifier_learns_it(tmp_path: Path) -> None:
    """Roles come from the domain of the benchmark whatever the classifier says (D-MR-1)."""
    for domain in ("Code", "Math"):
        folder = tmp_path / domain
        await fitted(folder, Client(), 8, domain=domain, epochs={"default": 4}, batch=4)
        rows = pq.read_table(folder / "training_decisions.parquet").to_pylist()
        assert {row["choice"].split("/")[0] for row in rows if row["name"] == "role"} == {domain}
        assert log(folder, "classifier_accuracy")[-1] == 1.0
        assert log(folder, "task_loss")[-1] < log(folder, "task_loss")[0]


def test_the_weight_of_cost_is_that_of_the_benchmark() -> None:
    for where, kappa in (("math", 3.0), ("mbpp", 7.0)):
        made = MASRouter(setting("pool", benchmark=where, domain="Math"), config(kappa={"default": 7.0, "math": 3.0}))
        for correct in (True, False):
            assert made.utility(attempt(correct, (0.5, True), (0.25, False))) == correct - kappa * 0.75


async def test_a_backbone_that_is_always_wrong_and_dearer_is_asked_less(tmp_path: Path) -> None:
    client = Client(right_if("small"), tokens=(1000, 300))
    made = await fitted(tmp_path, client, 24, epochs={"default": 6}, batch=8, kappa={"default": 20})
    untrained = method()
    untrained.load(checkpoint.load(tmp_path / "checkpoints" / "epoch-00.safetensors"))
    shares, utilities = [], []
    for one in (untrained, made):
        answered = await answered_by(one, client, questions(32, "h"), code_tools=code_tools())
        chosen = [d.choice for a in answered for d in a.trajectory.decisions if d.name == "backbone"]
        shares.append(chosen.count("large") / len(chosen))
        utilities.append(sum(utility(a, 20.0) for a in answered) / len(answered))
    assert shares[1] < shares[0] - 0.1
    assert utilities[1] > utilities[0] + 0.1


ITS = pool()


async def test_a_router_does_not_fit_other_choices(tmp_path: Path) -> None:
    await fitted(tmp_path, Client(), 1, epochs={"default": 0})
    found = checkpoint.load(tmp_path / CHECKPOINT)
    other = method()
    for given, message in (
        (Pool("Math", by_domain("Math"), ITS.backbones), "'Commonsense/Critic' where its roles now have"),
        (Pool(ITS.domain, ITS.roles, BACKBONES[::-1]), "'small' where its backbones now have 'large'"),
    ):
        other.pool = given
        with pytest.raises(UserError, match=message):
            other.load(found)
    with pytest.raises(UserError, match="trained with max_agents 6 and is given 5"):
        method(max_agents=5).load(found)
    for kind in ("modes", "tasks"):
        found.facts[kind][0][0] = "Swarm"  # type: ignore[index]
        with pytest.raises(UserError, match=f"trained with 'Swarm' where its {kind} now have"):
            method().load(found)
        found = checkpoint.load(tmp_path / CHECKPOINT)

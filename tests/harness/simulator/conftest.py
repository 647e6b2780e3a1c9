import pytest

from harness.benchmarks.items import Item
from harness.simulator import response_model
from harness.simulator.endpoint import SimulatedEndpoint
from tests.harness.simulator.samples import MODELS, mini, word_problems


@pytest.fixture(scope="session")
def questions() -> dict[str, list[Item]]:
    sizes = {"math": 60, "mbpp": 3, "humaneval": 3, "mmlu_pro": 100}
    return {"gsm_hard": word_problems(400), **{key: mini(key, size) for key, size in sizes.items()}}


@pytest.fixture(scope="session")
def endpoint(questions: dict[str, list[Item]]) -> SimulatedEndpoint:
    return SimulatedEndpoint(response_model.load(), MODELS.values(), questions)

from collections.abc import Callable
from typing import Any

import pytest

from harness.benchmarks.items import Item
from harness.files import ROOT
from harness.llm.backbones import Backbone
from harness.llm.backbones import load as load_backbones
from harness.simulator import parameters
from harness.simulator.endpoint import SimulatedEndpoint

from .samples import choices, mini, word_problems


@pytest.fixture(scope="session")
def backbones() -> dict[str, Backbone]:
    return load_backbones(ROOT / "config" / "backbones.yaml")


@pytest.fixture(scope="session")
def questions() -> dict[str, list[Item]]:
    return {
        "math": mini("math", 60),
        "gsm_hard": word_problems(400),
        "mbpp": mini("mbpp", 3),
        "humaneval": mini("humaneval", 3),
        "mmlu_pro": choices(100),
    }


@pytest.fixture(scope="session")
def endpoint(questions: dict[str, list[Item]], backbones: dict[str, Backbone]) -> SimulatedEndpoint:
    return SimulatedEndpoint(parameters.load(), backbones.values(), questions)


@pytest.fixture(scope="session")
def ask(endpoint: SimulatedEndpoint) -> Callable[[dict[str, Any]], str]:
    def text(request: dict[str, Any]) -> str:
        status, body = endpoint.chat(request)
        assert status == 200, body
        return body["choices"][0]["message"]["content"]

    return text

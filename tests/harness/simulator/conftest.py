import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.files import ROOT
from harness.llm.backbones import Backbone
from harness.llm.backbones import load as load_backbones
from harness.sandbox import Limits, Sandbox
from harness.simulator import Calibration, SimulatedEndpoint
from harness.simulator.build import build_calibration
from harness.simulator.parameters import Settings, load_settings

from .samples import Questions, choices, mini, word_problems


@pytest.fixture(scope="session")
def settings() -> Settings:
    return load_settings()


@pytest.fixture(scope="session")
def backbones() -> dict[str, Backbone]:
    return load_backbones(ROOT / "config" / "backbones.yaml")


@pytest.fixture(scope="session")
def pools() -> dict[str, Questions]:
    return {
        "math": Questions(mini("math", 60)),
        "gsm_hard": Questions(word_problems(400)),
        "mbpp": Questions(mini("mbpp", 3)),
        "humaneval": Questions(mini("humaneval", 3)),
        "mmlu_pro": Questions(choices(100)),
    }


@pytest.fixture(scope="session")
def calibration(pools: dict[str, Questions], settings: Settings, backbones: dict[str, Backbone]) -> Calibration:
    async def build() -> Calibration:
        async with Sandbox(Limits(cpu_s=5)) as sandbox:
            return await build_calibration(pools, settings, backbones, sandbox)  # type: ignore[arg-type]

    return asyncio.run(build())


@pytest.fixture(scope="session")
def calibration_path(calibration: Calibration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "calibration.json"
    path.write_bytes(calibration.content)
    return path


@pytest.fixture(scope="session")
def endpoint(calibration: Calibration) -> SimulatedEndpoint:
    return SimulatedEndpoint(calibration)


@pytest.fixture(scope="session")
def ask(endpoint: SimulatedEndpoint) -> Callable[[dict[str, Any]], str]:
    def text(request: dict[str, Any]) -> str:
        status, body = endpoint.chat(request)
        assert status == 200, body
        return body["choices"][0]["message"]["content"]

    return text

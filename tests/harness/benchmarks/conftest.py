import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.benchmarks.base import Tools
from harness.benchmarks.math_verifier import MathVerifier
from harness.sandbox import Sandbox


@pytest.fixture
async def tools() -> AsyncIterator[Tools]:
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        yield Tools(sandbox, math_verify)


@pytest.fixture
def mirror() -> Path:
    folder = os.environ.get("GMR_DATA_DIR")
    if not folder:
        pytest.skip("GMR_DATA_DIR is not set: no real benchmark files")
    return Path(folder)

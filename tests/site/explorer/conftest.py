from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.explorer.odd import make_site


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The explorer of four cells whose texts are as bad as can be."""
    folder = tmp_path_factory.mktemp("explorer")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_site()
    return folder / "reports/embedded/site"

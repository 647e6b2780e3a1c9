"""The table of variants on the page about GMR is that of the configuration."""

import importlib.util

from harness.files import ROOT


def test_the_table_of_variants_is_that_of_the_configuration() -> None:
    spec = importlib.util.spec_from_file_location("variants", ROOT / "docs" / "site" / "variants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text("utf-8")
    assert "| `gmr_no_halting` |" in page
    assert module.with_table(page) == page, "run: python docs/site/variants.py"

"""The simulated backbones are fitted to the numbers the paper prints, and the cells that are say so."""

from analysis.published import load
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones
from harness.runner import config
from harness.simulator.parameters import load_settings

METHOD_OF_STYLE = {"direct": "single", "step_by_step": "cot", "complex": "complex_cot"}


def test_the_accuracies_fitted_to_are_those_the_paper_prints() -> None:
    printed = {
        (row.method, row.backbone, benchmark): cell.percent
        for row in load().rows
        if row.method in METHOD_OF_STYLE.values()
        for benchmark, cell in row.accuracies.items()
    }
    fitted = {
        (METHOD_OF_STYLE[style], backbone, benchmark): value
        for benchmark, styles in load_settings().accuracy.items()
        for style, row in styles.items()
        for backbone, value in row.items()
    }
    assert fitted == printed


def test_the_costs_fitted_to_are_those_the_paper_prints() -> None:
    published = load()
    for benchmark, table in load_settings().cost.items():
        printed = {(cost.method, cost.backbone): cost.cost for cost in published.costs[benchmark]}
        for style, method in METHOD_OF_STYLE.items():
            assert getattr(table, style) == {key: printed[method, key] for key in getattr(table, style)}


def test_exactly_the_fitted_methods_are_marked_as_no_finding() -> None:
    marked = {key for key, entry in config.methods().items() if entry.calibrated}
    assert marked == set(METHOD_OF_STYLE.values())


def test_tables_simulation_and_configuration_name_the_same_things() -> None:
    published, settings = load(), load_settings()
    pool = load_backbones(ROOT / "config" / "backbones.yaml")
    assert list(published.backbones) == [*pool, config.POOL]
    assert set(published.benchmarks) == set(settings.accuracy)

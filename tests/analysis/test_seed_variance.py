"""Mean and deviation over training seeds."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.published import load
from analysis.source import Source
from analysis.table import NOT_RUN, signed
from harness.errors import UserError
from tests.analysis.reading import seed_variance
from tests.analysis.spending import cell_of, record_of

# Right answers of 50, by benchmark and seed.
RIGHT = {
    "math": (20, 30, 40),
    "gsm_hard": (10, 11, 15),
    "mbpp": (25, 25, 25),
    "humaneval": (40, 44, 49),
    "mmlu_pro": (5, 9, 1),
}


def run(write_cell, verdicts, method="gmr", backbone="pool", seeds=(0, 1, 2), without=()):
    return [
        write_cell(method, backbone, key, seed=seed, correct=verdicts(RIGHT[key][seed], 50))
        for key in RIGHT
        for seed in seeds
        if (key, seed) != without
    ]


def build(folders):
    return seed_variance.build(Source.of(folders))


def test_mean_and_sample_deviation_of_a_benchmark_and_overall_by_seed_first(write_cell, verdicts):
    table = build(run(write_cell, verdicts))
    assert [row.labels[2] for row in table.rows] == ["mean", "sd", "seed 0", "seed 1", "seed 2"]
    overall = 2 * np.array(list(RIGHT.values())).mean(axis=0)
    for group, percents in (("MATH", 2 * np.array(RIGHT["math"])), ("Overall", overall)):
        texts = [cell_of(table, row, group, "Meas.").text for row in table.rows]
        assert texts == [f"{one:.2f}" for one in (percents.mean(), percents.std(ddof=1), *percents)]
    assert cell_of(table, table.rows[0], "MATH", "Meas.").beside == signed(60 - 78.37)
    record = record_of(table, benchmark="overall")
    assert [float(one) for one in record["by_seed"].split()] == pytest.approx(overall.tolist())
    assert float(record["sd"]) == pytest.approx(overall.std(ddof=1))
    assert (record["seeds"], len(record["run_id"].split())) == ("0 1 2", 15)


def test_everything_published_stands_there(write_cell, verdicts):
    rows = (("gmr", "pool"), ("puppeteer", "qwen-2.5-32B"), ("masrouter", "pool"))
    folders = [folder for row in rows for folder in run(write_cell, verdicts, *row)]
    table = build(folders)
    assert [group.title for group in table.groups] == ["GSM-Hard", "MATH", "MBPP", "HumanEval", "MMLU-Pro", "Overall"]
    means = [row.labels[:2] for row in table.rows if row.labels[2] == "mean"]
    assert means == [("MASRouter", "LLM Pool"), ("Puppeteer", "qwen-2.5-32B"), ("GMR", "LLM Pool")]
    for record in table.records:
        printed = load().further["seed_variance"][record["method"]][record["benchmark"]]
        assert (float(record["published_mean"]), float(record["published_sd"])) == (printed["mean"], printed["sd"])
    assert len(table.records) == 18
    assert any("GMR lowest 76.62" in note and "MASRouter highest 74.27" in note for note in table.notes)
    assert table == build(folders[::-1])


@pytest.mark.parametrize(("key", "seed"), [("mbpp", 1), ("mmlu_pro", 0)])
def test_a_missing_seed_is_refused_by_name(write_cell, verdicts, key, seed):
    with pytest.raises(UserError, match=rf"no cell of gmr on {key} with pool and seed {seed}.*seeds 0, 1, 2"):
        build(run(write_cell, verdicts, without=(key, seed)))


def test_one_seed_has_no_deviation(write_cell, verdicts):
    table = build(run(write_cell, verdicts, seeds=(0,)))
    assert [row.labels[2] for row in table.rows] == ["mean", "sd"]
    assert {cell_of(table, table.rows[1], group.title, "Meas.").text for group in table.groups} == {NOT_RUN}
    assert record_of(table, benchmark="math")["sd"] == ""
    assert any("single training" in note for note in table.notes)

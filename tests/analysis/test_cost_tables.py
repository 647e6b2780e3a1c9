"""Tables of cost, compute, time and prices, and the calls that a measured cost counts."""

from typing import Any

import pytest
import yaml

from analysis.exhibit import FAR, NOT_RUN, Entry
from analysis.finished_cells import read
from analysis.frames import UNIT
from analysis.paper.costs import pflops
from analysis.published import load
from harness.errors import UserError
from harness.files import ROOT
from harness.runner.preset import resolve
from tests.analysis import reading
from tests.analysis.cells import WriteCell, timed, title
from tests.analysis.reading import Read as Table
from tests.analysis.reading import backbones, benchmark_cost, costs, hw_cost, paired

ACCURACY, COST, TOTAL = "Accuracy (%)", "Cost of a question (1e-4)", "Total cost"
# What a question of the fixture costs; half of it is the final call.
STEPS, ALL = 0.125, 0.25
ROWS = {"gmr": "pool", "masrouter": "pool", "puppeteer": "qwen-2.5-32B"}
PRINTED = 0.629 / 1056


def macnet(table: Table, group: str, column: str = "Meas.") -> Any:
    return table.entry(group, column, "MacNet-Chain", "qwen-2.5-14B")


def test_a_published_cost_counts_the_steps_of_gmr_and_puppeteer_and_all_calls_of_others(write_cell: WriteCell) -> None:
    for method in ("gmr", "gmr_no_halting", "full_history", "puppeteer"):
        assert set(read(write_cell(method)).items["cost"]) == {STEPS}, method
    for method in ("masrouter", "macnet_tree", "aflow", "single", "no_method_of_the_suite"):
        assert set(read(write_cell(method)).items["cost"]) == {ALL}, method


@pytest.mark.parametrize("artefact", [costs, benchmark_cost])
def test_tables_compare_the_paper_s_cost_and_show_that_of_all_calls(write_cell: WriteCell, artefact: Any) -> None:
    cells = [write_cell(*row) for row in ROWS.items()]
    table = artefact(*cells)
    for (method, backbone), own in zip(ROWS.items(), (STEPS, ALL, STEPS), strict=True):
        row, record = (title(method), load().backbones[backbone]), table.record(method=method, backbone=backbone)
        group = next(heading.title for heading in table.groups if "All calls" in heading.columns)
        texts = [table.entry(group, column, *row).text for column in ("Meas.", "All calls")]
        assert texts == [f"{UNIT * own:.2f}", f"{UNIT * ALL:.2f}"]
        assert float(record["cost_ratio"]) == pytest.approx(own / float(record["published_cost_per_query"]))
    against = paired(*cells).record(method="masrouter", benchmark="gsm_hard")
    assert (float(against["cost_ratio"]), float(against["cost_ratio_all_calls"])) == (STEPS / ALL, 1.0)


def test_calls_tokens_and_cost_are_those_of_one_question(write_cell: WriteCell) -> None:
    """The cells of the fixture have 2 calls, prompts of 100 to 103 tokens, 10 tokens of reply and a cost of 0.25."""
    [row] = costs(write_cell("macnet_chain")).rows
    calls, tokens, published, cost, *_ = row.entries
    assert (calls.text, tokens.text, cost.text, cost.below) == ("2.0", "102 + 10", "2500.00", "2500.00–2500.00")
    assert float(published.text) == pytest.approx(1e4 * PRINTED, abs=0.005)
    assert (float(cost.beside.removeprefix("×")), cost.sign) == (pytest.approx(0.25 / PRINTED, rel=1e-3), FAR)


def test_what_a_server_had_in_its_cache_may_have_its_own_price(write_cell: WriteCell) -> None:
    """Of four questions at 0.25 each, two had 1e4 tokens in the cache, which cost 2 instead of 10 a million."""
    cached = enumerate((10_000, 10_000, 0, None))
    calls = [{"item_id": f"item-000{n}", "key": str(n), "cached_tokens": tokens} for n, tokens in cached]
    backbones = {"qwen-2.5-14B": {"model": "q", "parameters_b": 14, "prices": [10, 20], "price_cached": 2}}
    [row] = (table := costs(write_cell(calls=calls, backbones=backbones))).rows
    with_cache = [
        entry.text for name, entry in zip(table.groups[0].columns, row.entries, strict=True) if "cache" in name
    ]
    assert with_cache == [f"{UNIT * (0.25 - 2 * 0.01 * 8 / 4):.2f}"]
    assert not any("cache" in name for name in costs(write_cell(calls=calls)).groups[0].columns)


def test_copies_are_counted_within_a_question_and_averaged_over_seeds(write_cell: WriteCell) -> None:
    """The third and the fourth of five calls repeat earlier ones of their question; the fifth is another question's."""
    calls = [{"item_id": f"item-{item:0>4}", "key": key} for item, key in zip("00001", "xyxxx", strict=True)]
    cells = write_cell("gmr", "pool", calls=calls), write_cell("gmr", "pool", seed=1), write_cell("macnet_chain")
    assert [row.entries[0].below for row in costs(*cells).rows] == ["0% copies", "20% copies"]


def test_accuracy_cost_and_total_beside_the_published_ones(write_cell: WriteCell) -> None:
    table = benchmark_cost(write_cell("macnet_chain", cost=[2e-4, 4e-4, 6e-4, 8e-4]))
    assert macnet(table, COST, "Publ.").text == f"{1e4 * PRINTED:.2f}"
    assert (macnet(table, COST).text, macnet(table, COST).beside) == ("5.00", f"×{5e-4 / PRINTED:.2f}")
    assert macnet(table, ACCURACY).beside == "+15.25"
    assert dict(table.provenance)["cells"] == "1"
    table = benchmark_cost(write_cell("macnet_chain", benchmark="humaneval", cost=1e-4))
    # 1e-4 x 129, as 86.82 % is 112 of 129.
    assert [macnet(table, TOTAL, column).text for column in ("Publ.", "Meas.")] == ["0.019", "0.013"]
    assert [group.detail for group in table.groups] == ["n = 4", "n = 4", "scaled to n = 128 or 129"]
    with pytest.raises(UserError, match="cells of gsm_hard, mbpp; expected those of one benchmark"):
        benchmark_cost(write_cell("aflow"), write_cell("aflow", benchmark="mbpp"))


# Two operations a token and parameter, by hand.
CALLS = [
    {"item_id": f"item-000{item}", "backbone": f"qwen-2.5-{size}B", "prompt_tokens": prompt, "completion_tokens": reply}
    for item, size, prompt, reply in ((3, 32, 0, 1000), (1, 14, 3000, 1500), (0, 14, 1000, 500))
]
PFLOPS = [28e9 * 1500 / 1e15, 28e9 * 4500 / 1e15, 0, 64e9 * 1000 / 1e15]


def test_compute_and_time_beside_the_published_ones(write_cell: WriteCell) -> None:
    folder = write_cell("gmr", "pool", "humaneval", simulated=False, calls=CALLS)
    assert pflops(read(folder)).tolist() == pytest.approx(PFLOPS)
    table = hw_cost(timed(folder))
    printed, own, seconds, passed = table.row("GMR").entries
    mean = sum(PFLOPS) / 4
    assert (printed.text, seconds.text) == ("0.107", "1.5")
    assert (float(own.text), own.beside) == (pytest.approx(mean, abs=5e-4), f"×{mean / 0.107:.2f}")
    low, high = map(float, own.below.split("–"))
    assert low < mean < high
    assert (passed.text, passed.beside) == ("1.50", "×1.00"), "seconds of the pass over the number of questions"
    # Where one seed was asked in several starts, and of a simulated run, there are FLOPs and no seconds.
    again = timed(write_cell("gmr", "pool", "humaneval", seed=1, calls=CALLS), None)
    other = timed(write_cell("gmr", "pool", "humaneval", simulated=True, calls=CALLS, notes=()))
    for cells in ((folder, again), (other,)):
        table = hw_cost(*cells)
        printed, own, seconds = table.row("GMR").entries
        assert (printed.text, float(own.text), seconds.text) == ("0.107", pytest.approx(mean, abs=5e-4), "1.5")
        assert [group.detail for group in table.groups[:2]] == ["n = 4", ""]
    # A row without seconds beside one that has them.
    table = hw_cost(folder, write_cell("masrouter", "pool", "humaneval", calls=CALLS))
    assert [table.row(name).entries[-1].text for name in ("GMR", "MASRouter", "Puppeteer")] == ["1.50", "", "–"]


def test_calls_that_cannot_be_counted_are_refused(write_cell: WriteCell) -> None:
    known = {"item_id": "item-0000", "backbone": "gone-7B", "prompt_tokens": 5, "completion_tokens": 5}
    with pytest.raises(UserError, match=r"'gone-7B', whose size run"):
        pflops(read(write_cell(calls=[known])))
    with pytest.raises(UserError, match="not a readable table with the columns item_id"):
        pflops(read(write_cell(calls=[{"item_id": "item-0000"}])))


TABLES = "main_table costs benchmark_cost hw_cost seed_variance gate_behaviour halting_training ablation paradigm roles"


@pytest.mark.parametrize("name", TABLES.split())
def test_a_simulated_run_is_compared_with_nothing(make: WriteCell, name: str) -> None:
    """In every table that compares a real one with the paper; differences between rows of a run stay."""
    for simulated in (False, True):
        calls = [{**call, "key": "k"} for call in CALLS]
        folder = make(benchmark="humaneval", calls=calls, updates=[{"steps": 2.0}], simulated=simulated)
        table = getattr(reading, name)(timed(folder))
        assert bool(table.warning) is simulated
        marks = [entry.beside + entry.sign for row in table.rows for entry in row.entries]
        assert any(marks) is not simulated
        assert not (simulated and any(entry.mark for row in table.rows for entry in row.entries))
        titles = {title for *_, title in table.shown.columns} & {"Meas.", "Sim."}
        assert titles <= {"Sim." if simulated else "Meas."}
        notes = " ".join(table.notes)
        assert not (simulated and any(word in notes for word in ("Meas.", "Bold", "ecoding")))
        assert ("between processors" in table.run_notes[-1]) is simulated
        compared = {"difference", "cost_ratio", "pflops_ratio", "seconds_ratio"} & set(table.frame)
        assert not (simulated and table.frame[sorted(compared)].notna().any(axis=None))


PRICES = yaml.safe_load((ROOT / "config" / "published.yaml").read_text())["prices"]


def entries(table: Table, key: str) -> tuple[Entry, ...]:
    [place] = [place for place, record in enumerate(table.records) if record["backbone"] == key]
    return tuple(table.rows[place].entries)


def test_size_and_prices_beside_those_printed() -> None:
    """Another size is flagged, a backbone of one's own added, one that is gone kept."""
    preset = resolve("embedded")
    declared = dict(preset.declared)
    declared["qwen-2.5-14B"] = declared["qwen-2.5-14B"].model_copy(update={"parameters_b": 14.7})
    declared["own-7B"] = declared.pop("llama-3.1-8B").model_copy(update={"parameters_b": 7})
    table = backbones(preset=preset.model_copy(update={"declared": declared}))
    assert [record["backbone"] for record in table.records] == [*PRICES, "own-7B"]
    for key, printed in PRICES.items():
        published, here = entries(table, key)[:6:2], entries(table, key)[1:6:2]
        assert [entry.text for entry in published] == [f"{printed[name]:g}" for name in ("size", "input", "output")]
        if key not in ("qwen-2.5-14B", "llama-3.1-8B"):
            assert [entry[:4] for entry in here] == [(entry.text, "", "", "") for entry in published]
    flagged, own, gone = (entries(table, key)[1:6:2] for key in ("qwen-2.5-14B", "own-7B", "llama-3.1-8B"))
    assert [(one.sign, one.beside) for one in flagged] == [("‡", "+0.7"), ("‡", "+0.0021"), ("‡", "+0.007")]
    assert [(one.text, one.sign) for one in own] == [("7", ""), ("0.021", ""), ("0.07", "")]
    assert [one.text for one in gone] == [NOT_RUN] * 3

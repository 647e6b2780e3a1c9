"""The main table, each entry against the cells and the paper; and the table of errors."""

import numpy as np

from analysis.exhibit import NOT_RUN, TIED, Entry
from analysis.published import load
from analysis.statistics import wilson
from harness.llm.request import Sampling
from tests.analysis.by_hand import crossed
from tests.analysis.cells import TITLES, pool_of, verdicts
from tests.analysis.reading import Read as Table
from tests.analysis.reading import errors, main_table, paired

FIVE = ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")


def place(table: Table, group: str, *labels: str) -> Entry:
    return table.entry(group, "Meas.", *labels)


def test_all_published_rows_stand_there_and_measured_places_beside_them(write_cell):
    table = main_table(
        write_cell("cot", "qwen-2.5-14B", "mbpp", correct=verdicts(36, 50)), write_cell(benchmark="math")
    )
    assert [(group.title, group.detail) for group in table.groups] == [("MATH", "n = 4"), ("MBPP", "n = 50")]
    printed = [f"{row.accuracies['math'].percent:.2f}" for row in load().rows]
    assert ([row.entries[0].text for row in table.rows], len(printed)) == (printed, 21)
    interval = "{:.1f}–{:.1f}".format(*(100 * end for end in wilson(36, 50)))
    assert table.entry("MBPP", "Publ.", "CoT", "qwen-2.5-14B").text == "70.80"
    assert place(table, "MBPP", "CoT", "qwen-2.5-14B") == Entry("72.00", beside="+1.20", below=interval)


def test_rows_that_cannot_be_told_apart_from_the_best_have_a_sign_in_real_runs(write_cell):
    """Of 100 questions the best row is right on 90; one loses 2, whose exact p is 0.5, and one 40."""
    n = {"gmr": 90, "masrouter": 88, "puppeteer": 50}

    def signs(*benchmarks, **changes):
        rows = [(name, "pool" if name != "puppeteer" else "qwen-2.5-32B", key) for name in n for key in benchmarks]
        cells = [write_cell(*row, correct=verdicts(n[row[0]], 100), **changes) for row in rows]
        table = main_table(*cells)
        entries = [row.entries for row in table.rows if row.entries[-1].text != "–"]
        return ["".join(entry.sign for entry in row) for row in entries]

    assert sorted(signs("humaneval")) == ["", TIED, TIED]
    assert signs("humaneval", simulated=True) == [""] * 3
    assert signs("humaneval", "gsm_hard") == [""] * 3, "without an average there is no best row"
    assert sorted(signs(*TITLES)) == ["", "", TIED], "five times as many questions tell 2 points apart"


def test_the_average_needs_all_five_and_weighs_benchmarks_not_items(write_cell):
    sizes = dict(zip(FIVE, (1, 2, 4, 10, 100), strict=True))
    cells = [write_cell("cot", benchmark=key, correct=verdicts(key == "math", n)) for key, n in sizes.items()]
    partial = [write_cell("single", benchmark=key, correct=[True] * sizes[key]) for key in FIVE[:4]]
    table = main_table(*cells, *partial)
    assert place(table, "Avg.", "CoT", "qwen-2.5-14B").text == "20.00"
    assert place(table, "Avg.", "CoT", "qwen-2.5-14B").beside == "−52.11"
    assert place(table, "Avg.", "Single LLM", "qwen-2.5-14B").text == NOT_RUN
    assert "Avg." not in [group.title for group in main_table(*partial).groups]


def test_a_row_on_another_pool_has_no_published_value_and_stands_where_its_method_does(write_cell):
    pool = pool_of({"a-3B": 3, "a-1B": 1})
    single = [write_cell("single", key, backbones={key: one}) for key, one in pool.items()]
    table = main_table(*single, write_cell("gmr", "pool", backbones=pool))
    rows = [("Single LLM", "a-1B"), ("Single LLM", "a-3B"), ("GMR", "LLM Pool")]
    assert [row.labels[:2] for row in table.rows] == rows
    for row in table.rows:
        entry = row.entries[0]
        assert (entry.text, entry.beside, entry.mark) == ("75.00", "", ""), "equal values are not ranked"
    for row in (("single", "mine"), ("gmr", "pool")):
        assert len(main_table(write_cell(*row, backbones=pool_of({"mine": 1}))).rows) == 1
    assert len(main_table(write_cell("gmr", "pool")).rows) == 21


def test_a_method_that_asks_one_more_backbone_makes_no_other_pool_and_follows_at_the_end(write_cell):
    pool = pool_of(dict.fromkeys(load().prices, 3))
    more = pool | pool_of({"judge-7B": 7})
    table = main_table(write_cell("gmr", "pool", backbones=pool), write_cell("mine", "pool", backbones=more))
    assert place(table, "GSM-Hard", "GMR", "LLM Pool").beside != ""
    assert (len(table.rows), table.rows[-1].labels[:2]) == (22, ("The mine", "LLM Pool"))
    assert [entry.text for entry in table.rows[-1].entries[:2]] == ["", "75.00"]


def test_several_seeds_are_averaged(write_cell):
    rights = {2: 36, 0: 20, 1: 28}
    table = main_table(*(write_cell("cot", seed=seed, correct=verdicts(right, 40)) for seed, right in rights.items()))
    measured = place(table, "GSM-Hard", "CoT", "qwen-2.5-14B")
    mean, reach, _ = crossed(np.array([verdicts(right, 40) for right in rights.values()], dtype=float))
    low, high = max(0, 100 * (mean - reach)), min(100, 100 * (mean + reach))
    assert (measured.text, measured.below) == ("70.00", f"{low:.1f}–{high:.1f}; seed 0: 50.00")
    record = table.record(method="cot", backbone="qwen-2.5-14B")
    assert (record["seeds"], record["n"], record["seed0"], len(record["run_id"].split())) == ("0 1 2", "40", "50.00", 3)


def test_a_missing_seed_leaves_no_average(write_cell):
    """Nor is the value of the benchmark it is missing from passed off as one of as many seeds."""
    places = [(key, seed) for key in FIVE for seed in (0, 1, 2) if (key, seed) != ("mbpp", 1)]
    table = main_table(*(write_cell("gmr", "pool", key, seed=seed) for key, seed in places))
    assert [place(table, group, "GMR").text for group in ("Avg.", "MBPP")] == [NOT_RUN, "75.00"]
    assert (
        "Seeds of the learned rows: 0/1/2 on MATH and GSM-Hard and HumanEval and MMLU-Pro; 0/2 on MBPP."
        in table.run_notes
    )


def test_answers_without_a_verdict_are_counted_and_told(write_cell):
    """In the main table the worst row of each benchmark; in that of errors every row and why."""
    statuses = ["graded", "graded", "unparsable", "tool_calls", "empty", "truncated", "call_failed", "sandbox_error"]
    correct = [True] + [False] * 7
    cut_off = [True, False, False, False, False, True, False, False]
    single = write_cell("single", correct=[True] * 8)
    folders = [write_cell("cot", correct=correct, status=statuses, cut_off=cut_off), single]
    cut = write_cell("cot", "llama-3.2-3B", correct=[True] * 6 + [False] * 2, status=["graded"] * 6 + ["truncated"] * 2)
    (note,) = [note for note in main_table(*folders, cut).notes if "Answers without a verdict" in note]
    assert "no answer found 12.5 %, empty answer 12.5 %, tool call in place of text 12.5 %" in note
    assert "reply cut off 12.5 %" in note
    silent = write_cell("cot", "llama-3.1-8B", correct=[False] * 8, status=["empty"] * 8)
    for cells, is_told in ((folders, False), ([silent], True)):
        assert any("reasoning_content" in note for note in main_table(*cells).notes) is is_told
    assert not any("Answers without a verdict" in note for note in main_table(single).notes)
    table = errors(*folders)
    below = "N 12.5, E 12.5, T 12.5, R 12.5, C 12.5, S 12.5"
    assert table.entries("GSM-Hard", "No verdict") == [Entry("0.0"), Entry("75.0", below=below)]
    assert table.entries("GSM-Hard", "At limit") == [Entry("0.0"), Entry("25.0")]
    record = table.record(method="cot")
    names = ("measured", "measured_of_graded", "graded", "unparsable", "empty", "truncated", "call_failed", "cut_off")
    assert [float(record[name]) for name in names] == [12.5, 50, 25, 12.5, 12.5, 12.5, 12.5, 25]


def test_programs_are_counted_by_how_they_ended(write_cell):
    graded = ["passed", "wrong_answer: assert f(1) == 2", "exception: cpu_limit", "cpu_limit", "memory_limit"]
    ends = {**dict.fromkeys([*graded, "killed: signal 11"], "graded"), "HTTP 400: too long": "call_failed", "": "empty"}
    programs = {"correct": [True] + [False] * 7, "status": list(ends.values()), "detail": list(ends)}
    folders = [write_cell("cot", benchmark="mbpp", **programs), write_cell("cot", correct=[True])]
    table = errors(*folders, write_cell("single", correct=[True]))
    shared = ("No verdict", "At limit")
    assert [group.columns for group in table.groups] == [shared, (*shared, "Stopped")]
    assert table.texts == [["0.0", "0.0", *[NOT_RUN] * 3], ["0.0", "0.0", "25.0", "0.0", "37.5"]]
    record = table.record(benchmark="mbpp")
    names = ("passed", "wrong_answer", "exception", "cpu_limit", "memory_limit", "killed", "wall_limit")
    assert [float(record[name]) for name in names] == [12.5] * 6 + [0]
    assert table.record(method="single", benchmark="gsm_hard")["passed"] == ""


def test_the_second_grader_of_mathematics(write_cell):
    also = {right: [("math_verify", right)] for right in (True, False)} | {None: []}
    table = main_table(
        write_cell("cot", benchmark="math", also=[also[True]] * 4),
        write_cell("single", benchmark="math", also=[also[right] for right in (True, True, None, False)]),
        write_cell("aflow", benchmark="mbpp"),
    )
    shares = {row["method"]: row["math_verify"] for row in table.records if row["measured"]}
    assert shares == {"single": "50.00", "cot": "100.00", "aflow": ""}
    (note,) = [note for note in table.notes if "Math-Verify" in note]
    assert "by −25.00 to +25.00 points" in note


def test_rows_that_were_sampled_otherwise_than_others_are_named(write_cell):
    """A comparison of methods is one only if they decode alike, or else it has to say so."""

    def notes_of(**sampling: object) -> str:
        """Return the notes of a table of two rows, the second one sampled as given."""
        cells = [write_cell("single"), write_cell("cot", **sampling)]
        return " ".join(note for table in (main_table(*cells), paired(*cells)) for note in table.run_notes)

    hot, cold = Sampling(0.7, 0.8, 20, 1.1)._asdict(), Sampling(0.1)._asdict()
    assert notes_of().count("Decoding: temperature 0.") == 2
    sampled = "temperature 0.1 to 0.7, top_p 0.8 to 1, top_k -1 to 20, repetition_penalty 1 to 1.1"
    mixed = notes_of(sampling=[cold, hot])
    assert mixed.count(f"{sampled} (only CoT (qwen-2.5-14B)).") == 2


def test_a_note_of_whole_benchmarks_names_them_and_a_note_of_single_rows_those(write_cell):
    bound = ["limit: 4 test questions"]
    cells = [write_cell(method, benchmark="mbpp", notes=bound) for method in ("single", "cot")]
    cells += [write_cell("single", benchmark="math"), write_cell("cot", benchmark="math", notes=["greedy decoding"])]
    bounded = write_cell("cot", benchmark="humaneval", notes=["limit: 99 test questions"])
    (settings,) = [note for note in main_table(*cells, bounded).run_notes if note.startswith("Settings")]
    assert "limit: 4 test questions on MBPP" in settings
    assert "greedy decoding (only CoT" in settings
    assert "99" not in settings, "it has fewer"

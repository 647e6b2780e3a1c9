"""What every record of a measurement says of the runs behind it."""

from __future__ import annotations

import pytest

from analysis import tidy
from analysis.artefacts import main_table
from analysis.measures import Key, measure
from analysis.provenance import provenance
from analysis.results import read
from analysis.source import Source
from harness.runner.config import methods
from tests.analysis.spending import record_of

KEY = Key("gmr", "pool", "gsm_hard")


def test_what_all_seeds_share_stands_once_and_what_differs_once_a_seed(write_cell):
    cells = [read(write_cell("gmr", "pool", seed=seed, code=f"code {seed // 2}")) for seed in (2, 0, 1)]
    found = tidy.identity(measure(cells)[KEY])
    assert found["seeds"] == "0 1 2"
    assert found["code"] == "code 0 code 0 code 1"
    assert len(found["run_id"].split()) == 3
    assert found["config_hash"] == cells[0].run.config_hash


def test_every_backbone_is_named_once_with_who_served_it(write_cell):
    first = {"b": {"model": "org/B", "served_by": "one"}, "a": {"model": "org/A", "served_by": "one"}}
    second = {"a": {"model": "org/A", "served_by": "two"}, "b": {"model": "org/B", "served_by": "one"}}
    cells = [read(write_cell("gmr", "pool", seed=seed, backbones=one)) for seed, one in enumerate((first, second))]
    expected = "a=org/A by one; a=org/A by two; b=org/B by one"
    assert tidy.identity(measure(cells)[KEY])["backbones"] == expected


def test_seed_0_is_empty_where_it_was_not_run(write_cell):
    cells = [read(write_cell("gmr", "pool", seed=1))]
    assert tidy.measured(measure(cells)[KEY])["seed0"] == ""


def test_short_records_get_the_columns_of_the_longest():
    assert tidy.even([{"a": "1"}, {"a": "2", "b": "3"}]) == ({"a": "1", "b": ""}, {"a": "2", "b": "3"})


def test_a_program_can_read_every_difference(write_cell, verdicts):
    table = main_table.build(Source.of([write_cell("gmr", "pool", correct=verdicts(1, 10))]))
    record = record_of(table, method="gmr", benchmark="gsm_hard")
    assert float(record["difference"]) == -60.55
    assert record["backbones"] == "pool=simulated/pool by simulator 1"


COMMIT = "5ea1b2c0" * 5


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ({"revision": COMMIT, "revision_confirmed": True}, "org/A at 5ea1b2c05ea1 by one"),
        ({"revision": COMMIT, "revision_confirmed": False}, "org/A at 5ea1b2c05ea1 (not confirmed) by one"),
        (
            {"revision": "simulated-4b98-9136-0.2", "revision_confirmed": True},
            "org/A at simulated-4b98-9136-0.2 by one",
        ),
        ({"revision": None, "revision_confirmed": False}, "org/A by one"),
        ({}, "org/A by one"),
    ],
)
def test_a_backbone_has_its_revision(write_cell, revision, said):
    cell = read(write_cell("gmr", "pool", backbones={"a": {"model": "org/A", "served_by": "one", **revision}}))
    assert tidy.identity(measure([cell])[KEY])["backbones"] == f"a={said}"
    assert dict(provenance([cell]))["backbones"] == f"a = {said}"


def test_below_a_table_a_revision_that_is_shared_stands_once(write_cell):
    shared = {"served_by": "simulated", "revision": "simulated-w-c-1", "revision_confirmed": True}
    both = {key: {"model": f"org/{key.upper()}", **shared} for key in ("b", "a")}
    cell = read(write_cell("gmr", "pool", backbones=both))
    assert dict(provenance([cell]))["backbones"] == "a = org/A, b = org/B at simulated-w-c-1 by simulated"


def test_the_title_is_that_of_the_configuration_and_else_of_the_run(write_cell):
    known, unknown = (read(write_cell(method, "pool")) for method in ("gmr_no_halting", "nobody_knows_it"))
    assert known.run.method_title == methods()["gmr_no_halting"].title != "The gmr_no_halting"
    assert unknown.run.method_title == "The nobody_knows_it"


def test_below_a_table_the_backbones_of_several_worlds_stand_once(write_cell):
    worlds = [
        {
            key: {
                "model": f"org/{key.upper()}",
                "served_by": "simulated",
                "revision": world,
                "revision_confirmed": True,
            }
            for key in ("b", "a")
        }
        for world in ("simulated-v", "simulated-w")
    ]
    cells = [read(write_cell("gmr", "pool", benchmark=f"b{n}", backbones=world)) for n, world in enumerate(worlds)]
    said = "a = org/A, b = org/B at simulated-v by simulated, at simulated-w by simulated"
    assert dict(provenance(cells))["backbones"] == said

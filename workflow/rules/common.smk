import json
import re
import sys

from snakemake.exceptions import WorkflowError

from harness import config as suite
from harness import layout
from harness.config import Cell
from harness.errors import UserError
from harness.files import ROOT, code_of, fingerprint
from workflow import jobs, searches

TABLES = [f"main_table.{kind}" for kind in ("tex", "csv", "md", "html")]
COSTS = [f"costs.{kind}" for kind in ("tex", "csv", "md", "html")]
SEARCHES = [f"search_history.{kind}" for kind in ("md", "csv")]
LEAKS = [f"leak_report.{kind}" for kind in ("csv", "md")]
OVERRIDES = suite.typed(
    {key: value for key, value in config.items() if key != "preset"}
)
jobs.prepare(OVERRIDES)


def presets():
    """Every preset with the overrides applied; a mistake in any ends here, with one line."""
    targets = [
        word.split("/")
        for word in sys.argv
        if word.startswith(("reports/", "results/"))
    ]
    asked = [parts[1] for parts in targets if len(parts) > 2]
    try:
        suite.check_presets([config["preset"], *asked])
        return {name: suite.preset(name, OVERRIDES) for name in suite.preset_names()}
    except UserError as error:
        sys.exit(f"error: {error}")


PRESETS = presets()
METHODS = suite.methods()


def one_of(names):
    """A wildcard constraint that admits these names alone, which may be none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    preset="|".join(PRESETS),
    benchmark="[^/]+",
    method="[^/]+",
    backbone="[^/]+",
    seed=r"\d+",


def cell_of(wildcards):
    """The cell of a job."""
    return Cell(
        wildcards.method, wildcards.benchmark, wildcards.backbone, int(wildcards.seed)
    )


def data_of(name, benchmarks):
    """Manifests and questions of some benchmarks of a preset."""
    return [
        str(path(name, key))
        for key in benchmarks
        for path in (layout.manifest, layout.items)
    ]


def cell_inputs(wildcards):
    """What a cell reads: its data, the simulated world, the sealed logs that may answer it."""
    chosen, cell = PRESETS[wildcards.preset], cell_of(wildcards)
    try:
        suite.check_cell(chosen, cell)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    seals = [layout.seal(chosen.name, other) for other in suite.sharing(chosen, cell)]
    simulated = [*data_of(chosen.name, chosen.benchmarks), layout.world(chosen.name)]
    own = data_of(chosen.name, [cell.benchmark])
    return [*(simulated if chosen.simulated else own), *seals]


def wanted_searches():
    """The report on searches, where the preset that reports are copied from has any."""
    return SEARCHES if searches.folders(PRESETS[config["preset"]]) else []


def all_runs(wildcards):
    """``run.json`` of every cell of a preset."""
    chosen = PRESETS[wildcards.preset]
    return [layout.cell(chosen.name, cell) / "run.json" for cell in suite.cells(chosen)]


def as_text(value):
    """A configuration slice as one canonical line, so that Snakemake sees when it changes."""
    return json.dumps(value, sort_keys=True)


def code(*rooms):
    """Fingerprint of folders and files of the checkout."""
    return fingerprint([ROOT / room for room in rooms])

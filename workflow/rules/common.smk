import functools
import gc
import re
import sys

from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient

from harness.runner import config as suite
from harness import files
from harness.runner import simulation
from harness.runner import config_hash
from harness.runner import layout
from harness.runner.config import Cell
from harness.errors import UserError
from harness.files import ROOT
from analysis import registry
from workflow import jobs
from workflow import reports


def or_one_line(read):
    """What is read from the configuration; a mistake in it ends here, with one line."""
    try:
        return read()
    except UserError as error:
        sys.exit(f"error: {error}")


ARTEFACTS = or_one_line(registry.artefacts)
FOLDERS = registry.folders()
CLAIMS = [f"claims.{kind}" for kind in ("html", "md", "csv")]
OVERRIDES = files.yaml_values(
    {key: value for key, value in config.items() if key != "preset"}
)
jobs.prepare()


if 0 in (workflow.resource_settings.cores, workflow.resource_settings.nodes):
    sys.exit("error: no job can run on 0 cores; give --cores 1 or more, or all")
if "--no-hooks" in sys.argv and workflow.is_main_process:
    sys.exit("error: with --no-hooks no job would learn its settings; leave it out")


@functools.cache
def preset_named(name):
    """Return a preset with the overrides applied."""
    return suite.preset(name, OVERRIDES)


NAMES = suite.preset_names()


def check_presets():
    """Refuse mistakes in the presets that this run is about, before anything else is said of them."""
    targets = [
        word.split("/")
        for word in sys.argv
        if word.startswith(("reports/", "results/"))
    ]
    asked = [
        (parts[1] if len(parts) > 2 and parts[1] not in FOLDERS else config["preset"])
        for parts in targets
    ] or [config["preset"]]
    suite.check_presets([config["preset"], *asked])
    for name in asked:
        preset_named(name)


or_one_line(check_presets)
SETTLED = []


onstart:
    if workflow.local_exec:
        # Its timers pile up, one for each job that ends, and each selects jobs once a second (20 of 110 s in 400 jobs).
        workflow.scheduler.job_rate_limiter = None
    files.hand_on_trees()
    gc.freeze()
    gc.enable()
    # Not before: a dry run settles nothing, and the settings of a run that is under way stay as they are.
    for name in sorted(
        {job.wildcards.get("preset") for job in workflow.dag.needrun_jobs()}
        - {None}
    ):
        SETTLED.append(or_one_line(lambda: jobs.settle(preset_named(name))))
    CONSOLE.begin()


onsuccess:
    CONSOLE.succeed()


onerror:
    CONSOLE.fail()


METHODS = suite.methods()


def one_of(names):
    """A wildcard constraint that admits these names alone, which may be none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    preset=rf"({one_of(NAMES)})(@[^/]+)?",
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


def when_changed(is_current):
    """Return an input that is newer than all outputs, unless these were made of the settings and code of now.

    So what is on the disk decides what is made again, whatever Snakemake remembers of it.
    """
    planned = str(layout.PLANNED)
    return ancient(planned) if is_current else planned


def made_of(name, of, files, preset):
    """Return that input for a job other than a cell, by the file that says what its outputs were made of."""
    path = layout.made_of(preset, name)
    return when_changed(config_hash.is_made_of(path, of, map(Path, files)))


def data_inputs(wildcards):
    """Return the input by which changed settings and code make the questions again."""
    of = config_hash.made_of_data(preset_named(wildcards.preset))
    files = data_of(wildcards.preset, [wildcards.benchmark])
    return made_of(f"data/{wildcards.benchmark}", of, files, wildcards.preset)


def cell_inputs(wildcards):
    """What a cell reads: its data, the calibration or the check of the servers, the finished cells whose logs may answer it."""
    chosen, cell = preset_named(wildcards.preset), cell_of(wildcards)
    try:
        suite.check_cell(chosen, cell)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    sharing = [
        layout.cell(chosen.name, other) / "run.json"
        for other in suite.sharing(chosen, cell)
    ]
    # The calibration uses all questions of the preset, so those of the other benchmarks are no inputs of their own.
    calibrated = [layout.calibration(chosen.name)] if chosen.simulated else []
    return [
        *data_of(chosen.name, [cell.benchmark]),
        *calibrated,
        *health_of(chosen, cell.benchmark),
        *sharing,
        when_changed(config_hash.is_current(chosen, cell)),
    ]


def timing_inputs(wildcards):
    """The finished cell that is timed."""
    chosen, cell = preset_named(wildcards.preset), cell_of(wildcards)
    files = [layout.timing(chosen.name, cell) / "timing.json"]
    of = config_hash.made_of_timing(chosen, cell)
    return [
        layout.cell(chosen.name, cell) / "run.json",
        made_of(layout.timing_name(cell), of, files, chosen.name),
    ]


def health_of(chosen, benchmark):
    """The check of the servers, before the first call."""
    if chosen.simulated or chosen.recorded:
        return []
    return [layout.served(chosen.name, benchmark).with_suffix(".checked")]


def health_inputs(wildcards):
    """The questions of a benchmark, whose length servers must be able to take."""
    if preset_named(wildcards.preset).simulated:
        raise WorkflowError(
            f"preset {wildcards.preset} is simulated and has no servers"
        )
    return data_of(wildcards.preset, [wildcards.benchmark])


def calibration_inputs(wildcards):
    """The questions and, where a parameter is changed, the calibration as stated."""
    chosen = preset_named(wildcards.preset)
    base = [layout.calibration(layout.base(chosen.name))] if chosen.simulator else []
    files = [layout.calibration(chosen.name)]
    return [
        *data_of(chosen.name, chosen.benchmarks),
        *base,
        made_of("calibration", simulation.made_of(chosen), files, chosen.name),
    ]


def artefacts_of(kind):
    """A wildcard constraint that admits the names of the tables, or of the figures."""
    return one_of(key for key, artefact in ARTEFACTS.items() if artefact.kind == kind)


def artefact_inputs(wildcards):
    """What a table or figure is made from."""
    artefact, chosen = ARTEFACTS[wildcards.name], preset_named(wildcards.preset)
    try:
        artefact.check(chosen)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    return with_report(artefact.inputs(chosen), wildcards.name, artefact.files, chosen)


def with_report(inputs, name, files, chosen):
    """Return the inputs of a report, and the one by which changed settings and code make it again."""
    files = [layout.report(chosen.name, file) for file in files]
    of = reports.made_of(name, chosen)
    return [*inputs, made_of(f"reports/{name}", of, files, chosen.name)]


def claims_inputs(wildcards):
    """Every cell and timing of a preset that a claim may be about."""
    chosen = preset_named(wildcards.preset)
    inputs = (one.inputs(chosen) for one in reports.about_claims(chosen))
    paths = {str(path) for some in inputs for path in some}
    return with_report(sorted(paths), "claims", CLAIMS, chosen)


def page_inputs(wildcards):
    """Return every report of a preset."""
    chosen = preset_named(wildcards.preset)
    inputs = [layout.report(chosen.name, name) for name in everything(chosen)]
    return with_report(inputs, "page", ["index.html", "cells.csv"], chosen)


def everything_asked(wildcards):
    """Every report of the preset whose artefacts are copied to reports/NAME, as the copies, and the front page."""
    chosen = preset_named(config["preset"])
    return [*(f"reports/{name}" for name in everything(chosen)), "reports/index.html"]


def everything(chosen):
    """Every report of a preset but the page of them all; one that names its artefacts has no claims."""
    names = reports.artefacts_of(chosen)
    files = [file for name in names for file in ARTEFACTS[name].files]
    return [*files, *([] if chosen.artefacts else CLAIMS)]


def all_runs(wildcards, name, files):
    """``run.json`` of every cell of a preset's main table, for a report on all of them."""
    chosen = preset_named(wildcards.preset)
    runs = [layout.cell(chosen.name, cell) / "run.json" for cell in suite.cells(chosen)]
    return with_report(runs, name, files, chosen)


def name_of_run(chosen):
    """Return one line on the preset whose artefacts are copied to reports/NAME."""
    return f"{chosen.name}: {chosen.description}"


def is_run(chosen):
    """Return whether the copies are of a preset."""
    return config_hash.is_made_of(layout.REPORTS / "RUN", name_of_run(chosen))


def other_endings(kind, shown):
    """The endings of the files of a table or figure, but for the one that the report of Snakemake shows."""
    return [ending for ending in registry.ENDINGS[kind] if ending != shown]


def in_report(path, caption, category):
    """An output that `snakemake --report` shows."""
    name = path.removeprefix("reports/{preset}/").rpartition(".")[0]

    def labels(wildcards):
        backbones = backbones_of(wildcards)
        return {"artefact": name, "preset": "{preset}", "backbones": backbones}

    caption = f"../report/{caption}.rst"
    return report(path, caption=caption, category=category, labels=labels)


def section_of(wildcards):
    """The section of the paper that an artefact belongs to."""
    return ARTEFACTS[wildcards.name].section


def backbones_of(wildcards):
    """Whether the backbones of a preset are simulated, for Snakemake's report."""
    return "SIMULATED" if preset_named(wildcards.preset).simulated else "real"

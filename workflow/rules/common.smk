# What the rules share: the run of a preset, and whether an identity file says what it should.
import os
import re
import tempfile

from analysis import registry
from cli import parent, reports
from harness import files, fingerprint
from harness.errors import UserError
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.config import preset_names
from harness.runner.preset import resolve

# --config preset=NAME chooses the preset; every other key overrides one of its keys.
config["preset"] = str(config["preset"] or "")
OVERRIDES = files.yaml_values(
    {key: value for key, value in config.items() if key != "preset"}
)
RUNS = {}


def run_of(preset):
    """Return the run of a preset with the overrides of this command."""
    if preset not in RUNS:
        RUNS[preset] = resolve(preset, OVERRIDES)
    return RUNS[preset]


METHODS = run_of(config["preset"]).entries
ARTEFACTS = registry.artefacts()
parent.prepare_jobs()

# Newer than every output, also of a clock that is ahead, while the run is planned.
NEWER = tempfile.NamedTemporaryFile(prefix="gmr-newer-")
if workflow.is_main_process:
    os.utime(NEWER.name, (2**32, 2**32))


def current(identity):
    """Return the identity file, an input of the job that writes it; where it says something else, one that is newer.

    Then the job runs, and writes its identity file before its outputs. A plan writes nothing.
    """
    return str(identity.path) if identity.is_current() else NEWER.name


# Jobs read the settings of the run from a file, which is no input, as its pace and its budget stand in it, too.
onstart:
    os.utime(NEWER.name)  # Snakemake wants outputs to be newer than their inputs.
    for run in RUNS.values():
        run.write_settings()
    fingerprint.keep_digests()


def one_of(names):
    """Return the regular expression of these names, which may be none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    preset=one_of({*preset_names(), config["preset"]}),
    benchmark="[^/]+",
    method="[^/]+",
    backbone="[^/]+",
    seed=r"\d+",


def config_of(wildcards):
    """Return the configuration of the cell that the wildcards name."""
    names = wildcards.method, wildcards.benchmark, wildcards.backbone
    return run_of(wildcards.preset).cell(Cell(*names, int(wildcards.seed)))


def questions_of_cell(wildcards):
    run = run_of(wildcards.preset)
    # Simulated backbones know the questions of all benchmarks.
    is_simulated = run.endpoints == "simulated"
    known = run.benchmarks if is_simulated else [wildcards.benchmark]
    return layout.questions(run.name, *known)


def matched_cell(wildcards):
    matched = config_of(wildcards).matched
    return layout.cell(wildcards.preset, matched) / "run.json" if matched else []


def names_of(kind):
    """Return a wildcard constraint that admits the names of the tables, or of the figures."""
    return one_of(key for key, entry in ARTEFACTS.items() if entry.kind == kind)


def link_target(wildcards):
    """Return the artefact of this run's preset; refuse to put a link where a file is that the suite did not write."""
    target = layout.report(config["preset"], wildcards.name)
    link = layout.REPORTS / wildcards.name
    if link.exists() and not link.is_symlink():
        raise UserError(f"{link} is no link; move it away, or ask for {target}")
    if link.is_symlink() and not link.exists():
        link.unlink()  # Snakemake cannot plan with a link that leads nowhere.
    return target


def relative_target(wildcards):
    """Return the artefact as seen from the folder of the link; not every ln finds it out."""
    target = layout.report(config["preset"], wildcards.name)
    return os.path.relpath(target, (layout.REPORTS / wildcards.name).parent)


def leads_elsewhere(wildcards):
    """Return whether reports/NAME is a link to the artefact of another preset."""
    link = layout.REPORTS / wildcards.name
    return link.is_symlink() and os.readlink(link) != relative_target(wildcards)

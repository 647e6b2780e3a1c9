# Helpers of all rules: runs by preset, identity files, wildcard constraints.
import os
import re
import tempfile

from analysis import registry
from cli import reports, signals
from harness import files
from harness.errors import UserError
from harness.runner import layout
from harness.runner.layout import Cell
from harness.runner.config import preset_names
from harness.runner.preset import departures, methods_of, resolve

# --config preset=NAME selects the preset; every other key overrides a key of the preset.
config["preset"] = str(config["preset"] or "")
OVERRIDES = files.yaml_values(
    {key: value for key, value in config.items() if key != "preset"}
)
RUNS = {}


def run_of(preset):
    if preset not in RUNS:
        RUNS[preset] = resolve(preset, OVERRIDES)
    return RUNS[preset]


METHODS = methods_of(config["preset"], OVERRIDES)
ARTEFACTS = registry.artefacts()
signals.prepare_jobs()
if workflow.is_main_process and not workflow.dryrun:
    signals.release_dead_lock()

# Has a far-future mtime while planning, so that outputs written under a fast clock still count as stale.
NEWER = tempfile.NamedTemporaryFile(prefix=files.temporary_prefix("newer"))
if workflow.is_main_process:
    os.utime(NEWER.name, (2**32, 2**32))


def current(identity):
    """Return the identity file as input of its job or, if its content is outdated, a newer file.

    The newer file makes the job run; it writes the identity file before its outputs. Planning writes nothing.
    """
    return str(identity.path) if identity.is_current() else NEWER.name


# Jobs read the settings of the run from a file. It is not an input, since some settings do not affect results.
onstart:
    signals.note_holder()
    os.utime(NEWER.name)  # Snakemake requires outputs to be newer than inputs.
    for run in RUNS.values():
        run.write_settings()
        if others := departures(run):
            logger.warning(others)


def one_of(names):
    """Build a regular expression that matches these names only."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    preset=one_of({*preset_names(), config["preset"]}),
    benchmark="[^/]+",
    method="[^/]+",
    backbone="[^/]+",
    seed=r"\d+",


def config_of(wildcards):
    names = wildcards.method, wildcards.benchmark, wildcards.backbone
    return run_of(wildcards.preset).cell(Cell(*names, int(wildcards.seed)))


def link_target(wildcards):
    """Return the artefact of the preset. Raises UserError if reports/NAME is a file: only links are replaced."""
    target = layout.report(config["preset"], wildcards.name)
    link = layout.REPORTS / wildcards.name
    if link.exists() and not link.is_symlink():
        raise UserError(f"{link} is not a link; move it away, or request {target}")
    if link.is_symlink() and not link.exists():
        link.unlink()  # Snakemake cannot plan with a dangling link.
    return target


def relative_target(wildcards):
    """Return the artefact relative to the folder of the link, since `ln -r` is not portable."""
    target = layout.report(config["preset"], wildcards.name)
    return os.path.relpath(target, (layout.REPORTS / wildcards.name).parent)


def leads_elsewhere(wildcards):
    link = layout.REPORTS / wildcards.name
    return link.is_symlink() and os.readlink(link) != relative_target(wildcards)

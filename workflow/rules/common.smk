# What the rules share. The inputs of each rule are a method of cli/inputs.py; here they become inputs of Snakemake.
import os
import re
import tempfile

from snakemake.exceptions import WorkflowError
from snakemake.io import ancient

from analysis import registry
from cli import inputs, parent, reports
from harness import files, fingerprint
from harness.errors import UserError
from harness.runner import config as suite
from harness.runner import config_hash, layout
from harness.runner.config import Cell
from harness.runner.preset import resolve

# --config preset=NAME chooses the preset; every other key overrides one of its keys.
config["preset"] = str(config["preset"] or "")
OVERRIDES = files.yaml_values(
    {key: value for key, value in config.items() if key != "preset"}
)
JOBS = {}


def jobs_of(name):
    """Return the jobs of a preset with the overrides of this run."""
    if name not in JOBS:
        JOBS[name] = inputs.Jobs(resolve(name, OVERRIDES))
    return JOBS[name]


try:
    METHODS = jobs_of(config["preset"]).run.entries
    ARTEFACTS = registry.artefacts()
except UserError as error:
    raise WorkflowError(str(error)) from None
parent.prepare_jobs()


# Newer than every output, since it was made after them: an input of the jobs that are to run again. In the folder for
# temporary files, because a dry run writes nothing.
NEWER = tempfile.NamedTemporaryFile(prefix="gmr-newer-")
# Newer than outputs of a clock that is ahead, too, while the run is planned; what it makes is to be newer than this file.
if workflow.is_main_process:
    os.utime(NEWER.name, (2**32, 2**32))


# Jobs read the settings of their preset from a file. It is written here and not by a rule, since as an input of cells any
# change of it would run all of them again. A dry run writes nothing.
onstart:
    os.utime(NEWER.name)
    try:
        for jobs in JOBS.values():
            config_hash.write_settings(jobs.run)
        fingerprint.keep_digests()
    except UserError as error:
        raise WorkflowError(str(error)) from None


def one_of(names):
    """Return the regular expression of these names, which may be none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    preset=one_of({*suite.preset_names(), config["preset"]}),
    benchmark="[^/]+",
    method="[^/]+",
    backbone="[^/]+",
    seed=r"\d+",


def inputs_of(job, *names):
    """Return the input function of a rule: a method of cli/inputs.py, called with some wildcards."""

    def input_files(wildcards):
        values = [
            cell_of(wildcards) if name == "cell" else wildcards[name] for name in names
        ]
        try:
            return current_or_stale(*getattr(jobs_of(wildcards.preset), job)(*values))
        except UserError as error:
            raise WorkflowError(str(error)) from None

    return input_files


def current_or_stale(files, is_current):
    """Return inputs that make nothing run if the outputs of a job are current, else one more that is newer than them."""
    return [ancient(file) for file in files] if is_current else [*files, NEWER.name]


def link_target(name):
    """Return the artefact of this run's preset; refuse to put a link where a file is that the suite did not write."""
    target, link = layout.report(config["preset"], name), layout.REPORTS / name
    if link.exists() and not link.is_symlink():
        raise WorkflowError(f"{link} is no link; move it away, or ask for {target}")
    if link.is_symlink() and not link.exists():
        link.unlink()  # Snakemake cannot plan with a link that leads nowhere.
    return str(target)


def relative_target(name):
    """Return the artefact of this run's preset as seen from the folder of reports/NAME; not every ln finds it out."""
    target = layout.report(config["preset"], name)
    return os.path.relpath(target, (layout.REPORTS / name).parent)


def is_linked(name):
    """Return whether reports/NAME leads to the artefact of this run's preset."""
    link = layout.REPORTS / name
    return link.is_symlink() and os.readlink(link) == relative_target(name)


def cell_of(wildcards):
    """Return the cell that the wildcards name."""
    method, benchmark = wildcards.method, wildcards.benchmark
    return Cell(method, benchmark, wildcards.backbone, int(wildcards.seed))


def names_of(kind):
    """Return a wildcard constraint that admits the names of the tables, or of the figures."""
    return one_of(key for key, entry in ARTEFACTS.items() if entry.kind == kind)

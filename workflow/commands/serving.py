"""Servers of real models: planned, started, looked at, stopped; and what the endpoints of a preset serve."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Annotated

import typer

from harness import config, layout
from harness.errors import UserError
from workflow import stopping
from workflow.app import Overrides, PresetName, app, preset_of
from workflow.serving import deployment as deployments

serve = typer.Typer(no_args_is_help=True, help="Serve the backbones by vLLM: what fits, start, look, stop.")
app.add_typer(serve, name="serve")

_NOT_FITTING = 2
Name = Annotated[str, typer.Option("--deployment", help="A file of config/serving, without .yaml.")]
OneOrAll = Annotated[
    str | None, typer.Option("--deployment", help="Of this one alone; else of all.", show_default=False)
]
Only = Annotated[
    list[str] | None,
    typer.Option("--backbone", help="Its servers of this backbone alone; may be repeated.", show_default=False),
]
GpuMemory = Annotated[
    float | None,
    typer.Option("--gpu-memory", metavar="GIB", help="Memory of each GPU, instead of what the file says.", min=0.1),
]


def _chosen(name: str, backbones: list[str] | None, memory_gib: float | None) -> deployments.Deployment:
    found = deployments.read(name)
    if memory_gib is not None and found.gpus is not None:
        found = replace(found, gpus=replace(found.gpus, memory_gib=memory_gib))
    return found.only(backbones) if backbones else found


@serve.command()
def plan(deployment: Name = "one-gpu", backbone: Only = None, gpu_memory: GpuMemory = None) -> None:
    """Say what fits on the GPUs, and print the command lines and the endpoints. Needs no GPU and no vLLM.

    Status 2: something does not fit.
    """
    from workflow.serving import text

    found = _chosen(deployment, backbone, gpu_memory)
    shown, fits = text.plan(found, found.gpus)
    typer.echo(shown)
    if not fits:
        raise typer.Exit(_NOT_FITTING)


@serve.command()
def up(deployment: Name = "one-gpu", backbone: Only = None, gpu_memory: GpuMemory = None) -> None:
    """Start the servers that do not run yet, and wait until all are ready. They go on when this command ends.

    Logs and pid files lie in results/serving/DEPLOYMENT, and so do the entries for config/endpoints.yaml.
    """
    from workflow.serving.starting import ENDPOINTS
    from workflow.serving.starting import up as start

    found = _chosen(deployment, backbone, gpu_memory)
    start(found)
    typer.echo(f"export GMR_ENDPOINTS={found.folder / ENDPOINTS}")


@serve.command()
def status(deployment: OneOrAll = None) -> None:
    """Show the servers that were started: process, address, how long, state, memory, requests."""
    from workflow.serving import text

    known = {path: process for folder in _folders(deployment) for path, process in text.known(folder).items()}
    typer.echo(text.status(known) if known else "no server was started here")


@serve.command()
def down(deployment: OneOrAll = None) -> None:
    """Stop the servers and all they have started."""
    from workflow.serving import processes, text

    for folder in _folders(deployment):
        for path, process in text.known(folder).items():
            was_there = bool(process.members())
            willing = processes.stop(process)
            left = process.members()
            if left:
                raise UserError(f"{path.stem} does not end: processes {', '.join(map(str, left))}; look at {folder}")
            path.unlink(missing_ok=True)
            how = ("stopped" if willing else "killed, it did not stop when asked") if was_there else "was not running"
            logging.info("%s/%s: %s", folder.name, path.stem, how)


def _folders(name: str | None) -> list[deployments.Path]:
    if name is not None:
        return [deployments.read(name).folder]
    return sorted(path for path in (layout.RESULTS / "serving").glob("*") if path.is_dir())


@app.command()
def health(
    preset: PresetName,
    benchmark: Annotated[
        str | None, typer.Option(help="Only what this benchmark needs; else all of the preset.", show_default=False)
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Ask all endpoints of a preset what they serve, and write it to results/PRESET/served/BENCHMARK.json.

    Names everything that is wrong with any of them; no question is asked.
    """
    from workflow.serving import health as checks

    chosen = preset_of(preset, overrides)
    if benchmark is not None:
        config.check_benchmark(chosen, benchmark)
    written = stopping.run(checks.check(chosen, [benchmark] if benchmark else chosen.benchmarks))
    logging.info("every endpoint serves what preset %s asks: %s", preset, ", ".join(map(str, written)))

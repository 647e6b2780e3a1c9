"""The graders held against verdicts that others recorded."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from harness import layout
from workflow import stopping
from workflow.app import app


@app.command()
def agreement(
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder that holds outputs/*.jsonl.gz; GMR_DATA_DIR without.", show_default=False),
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: mmlu_pro, mmlu_stem, math, gsm8k, answer_pairs, humaneval, mbpp.", show_default=False
        ),
    ] = None,
) -> None:
    """Grade recorded model outputs and compare with the verdicts their publishers gave (reports/grading)."""
    from workflow.agreement import study, tables
    from workflow.agreement.records import FILES, data_directory

    compared = stopping.run(study.study(data_directory(data_dir), benchmark or FILES))
    written = tables.write(compared, layout.REPORTS / "grading")
    agree, decided = tables.shares(comparison for comparison in compared if comparison.difference is None)
    logging.info(
        "%d of %d verdicts under the same rule agree (%.2f %%): %s",
        agree,
        decided,
        100 * agree / max(decided, 1),
        ", ".join(map(str, written)),
    )

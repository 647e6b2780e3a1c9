"""Finished trajectories as people read them: what a method did on one question of one cell, and what was said."""

from analysis.trajectories.cells import CellRecords, open_cell, record_of
from analysis.trajectories.records import Choice, Gate, Record, Said, Step, Totals
from analysis.trajectories.steps import steps_of
from analysis.trajectories.texts import CallTexts

__all__ = [
    "CallTexts",
    "CellRecords",
    "Choice",
    "Gate",
    "Record",
    "Said",
    "Step",
    "Totals",
    "open_cell",
    "record_of",
    "steps_of",
]

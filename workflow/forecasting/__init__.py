"""What a run will ask, take and cost, reckoned from cells that were run already; and what it did ask afterwards.

Measured cells (:mod:`~workflow.forecasting.measured`) are scaled to the size of the cells to come
(:mod:`~workflow.forecasting.scaling`); a cell that was never run is reckoned from one like it
(:mod:`~workflow.forecasting.likeness`).
"""

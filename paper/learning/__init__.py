"""The study of learning: what training did to the routers of a preset, as a report and two tables.

From the bottom up: :mod:`.measures` reads one cell, :mod:`.results` collects the cells of a benchmark, :mod:`.study` is
the declaration of what is compared, :mod:`.contrasts` compares, :mod:`.report` puts all together, :mod:`.markdown` and
:mod:`.files` write it down.
"""

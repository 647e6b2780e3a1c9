"""The study of learning: what training did to the routers of a preset, as a report, tables and curves.

From the bottom up: :mod:`.measures` reads one cell, :mod:`.results` collects the cells of a benchmark, :mod:`.study` is
the declaration of what is compared, :mod:`.contrasts` compares, :mod:`.report` puts all together. :mod:`.curves`
follows a training and :mod:`.figure` draws it; :mod:`.markdown`, with :mod:`.notes` and :mod:`.fields`, is the text;
:mod:`.files` writes all of it down.
"""

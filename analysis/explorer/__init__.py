"""The page on which trajectories are read: from a cell to its items, and from an item to what was said.

:mod:`.packing` turns trajectories into what a page can load, :mod:`.data` divides that into chunks, :mod:`.page` writes
the page.
"""

"""One table an artefact: ``build``, a function from the results of a run to what a reader sees.

Each raises UserError where a cell cannot be read or the cells do not belong in one table.
"""

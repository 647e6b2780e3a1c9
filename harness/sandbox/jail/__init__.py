"""The code in the processes of a worker, imported by a bare interpreter (``-S``): the standard library only."""

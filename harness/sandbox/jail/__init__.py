"""Everything that runs in the processes of a worker: confine, execute, judge, watch.

These modules are imported by a bare interpreter (``-S``). They use the standard library only, import each other
relatively, and stay small: a program's process starts as a copy of one that has loaded them.
"""

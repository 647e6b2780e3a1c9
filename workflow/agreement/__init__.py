"""How far our verdicts agree with those that others recorded for real model outputs.

From the caller down: :mod:`.study` (grade the records of some benchmarks), :mod:`.tables` (what is written about it),
:mod:`.comparing` (our verdict beside the recorded one), :mod:`.differences` (where a recorded verdict follows another
rule than ours), :mod:`.questions` (a record as a question and an answer) and :mod:`.records` (the files).
"""

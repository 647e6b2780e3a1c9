"""The artefacts of the paper, each a module with `build`; the claims are in :mod:`analysis.paper.claims`."""

"""Servers of real models: what fits on a machine, their command lines, their processes, their health."""

"""Trajectories on a terminal."""

"""Agents: roles, prompts, activation, code tools, runtime context, trajectories."""

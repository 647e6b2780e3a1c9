"""Agents: roles, prompts, activation, code tools, context and trajectory."""

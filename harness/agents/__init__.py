"""Agents: roles, prompts, one activation, the code tools, and the record of what happened."""

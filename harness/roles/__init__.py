"""The role profiles that agents act in: a catalogue of 26, in three domains."""

from harness.roles.catalogue import DOMAINS, Output, Role, by_domain, catalogue, role

__all__ = ["DOMAINS", "Output", "Role", "by_domain", "catalogue", "role"]

"""Finished cells as logs of Inspect: what Inspect itself writes, made with its own classes."""

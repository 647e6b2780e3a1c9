"""Cheap routers without a trained network, which a learned router should beat. None of them is in the paper."""

"""MASRouter (Yue et al. 2025): one pass of small networks plans a whole team, which then answers (docs/baselines.md).

Kept as released, although one could argue with it: the domain of the benchmark is given to the router (D-MR-1);
backbones are drawn from one distribution without regard to the roles they get, the last role is missing from the
history, and the noise of the autoencoders is on at the test too (D-MR-6).
"""

from baselines.masrouter.method import Config, MASRouter, build

__all__ = ["Config", "MASRouter", "build"]

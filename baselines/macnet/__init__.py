"""MacNet (Qian et al.): agents on a fixed directed acyclic graph hand their solutions along its edges.

:mod:`.topology` is the graph, :mod:`.prompts` what agents are told, :mod:`.exchange` the calls of one node and of one
edge, :mod:`.textbook` and :mod:`.official` the order in which nodes run, :mod:`.method` what the suite sees.
"""

from baselines.macnet.method import Config, MacNet, build

__all__ = ["Config", "MacNet", "build"]

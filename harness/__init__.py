"""Ground of all methods: benchmarks, backbones, agents, training, the sandbox, the simulator and the runner."""

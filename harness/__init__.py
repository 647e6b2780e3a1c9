"""What all methods run on: benchmarks, backbones, agents, training, the sandbox, the simulator and the runner."""

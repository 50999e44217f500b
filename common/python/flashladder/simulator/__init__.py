"""warpsim's accesses and traces, the timeline's model, any CUDA program on the simulator."""

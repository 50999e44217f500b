"""What warpsim reports, and a model of time on top of its traces. The simulator itself: common/simulator.

accesses                        single accesses to memory (counters: the package warpsim)
trace, steps, replay, clocks    a launch's trace, as steps with clocks, replayed on one multiprocessor
warps, perfetto                 the timeline of its warps, and as a file for Perfetto
sim, speed                      any CUDA program on it; how fast it is
"""

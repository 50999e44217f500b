"""The stages: which there are, and what can be done with one.

stage, kernels                      what all stages have, what those with a kernel have
backward, decode, ring              the parts besides attention itself; host_streams: stage 00
stages                              the registry
run, sweep                          runs on arrays, and verified
launches, technique, overlap        stage.toml's launch as data; what counters must show
change, mistakes, ablations, tiles, alone       changed kernels: planted mistakes, variants, other tiles
source, diff                        parts of a kernel.cu, what it adds to the one before
"""

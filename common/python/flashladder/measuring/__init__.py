"""What is measured, and what is recorded.

bench                                       throughput, and the rules of all benchmarks
backward_bench, decode_bench, ring_bench    of the other parts; ring_rows, ring_memory, ring_peers: of the last
ablation_times, stream_times                variants and inputs that hurt, stage 00
peers, gpu_memory                           what stages stand beside, and memory for both
cudnn_peers                                 what PyTorch does not offer of cuDNN, by its own Python package
ncu, profile, profiler, roofline            Nsight Compute
machine_code                                what the assembler made of a loop
block_order, ring_model                      models
model_clocks                                how far off the timeline's model is
recorded, provenance                        records as files, what they were measured with
report_check                                reports that others send
detections                                  which tool notices which planted mistake; planted, executed, sanitizer: how
simulator_records                           what a GPU does that the simulator is held to
"""

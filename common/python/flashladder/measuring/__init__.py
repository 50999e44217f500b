"""What is measured, and what is recorded.

bench                                       throughput, and the rules of all benchmarks
backward_bench, decode_bench, ring_bench    of the other parts; ring_rows, ring_memory, ring_peers: of the last
ablation_times, hard_inputs, stream_times   variants, inputs that hurt, stage 00
peers, gpu_memory                           what stages stand beside, and memory for both
cudnn_package, cudnn_fp8, cudnn_gradients   what PyTorch does not offer of cuDNN, by its own Python package
ncu, profile, profiler, profiler_tables, roofline       Nsight Compute
machine_code                                what the assembler made of a loop
block_order, ring_model                      models
step_clocks, beside_clocks                  how far off the timeline's model is
recorded, provenance                        records as files, what they were measured with
report_archive, report_check, simulator_records         reports that others send
"""

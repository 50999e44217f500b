"""Throughput and its peers, Nsight Compute, machine code, recorded results."""

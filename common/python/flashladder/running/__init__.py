"""One run of a library in a worker process, the CUDA runtime by ctypes, the float64 reference and its bounds."""

"""One run of a library, in a process of its own.

job, server, worker     what a worker is told, how it is started, what it does
ring                    what it does for several GPUs
cudart, tensor_maps     the CUDA runtime by ctypes
verify                  the float64 reference and its bounds; gradients and decoding: those of other parts
timeline                spans of copies and kernels
"""

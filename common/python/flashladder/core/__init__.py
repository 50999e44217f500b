"""What all folders use. It imports nothing of the package but itself.

abi, dtypes                                 the stages' C ABI as ctypes; 16-bit types as bit patterns
problem, decode_problem, ring_problem       sizes, inputs and how they lie in memory
device                                      a GPU or the simulator
paths, project, environment, toml           where things lie, what pyproject.toml says, what programs are told
console, errors, signals, expression        output for people, the one error, Ctrl-C, expressions of stage.toml
"""

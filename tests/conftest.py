"""For all tests, and read before any of them, or NumPy, is."""

import os

# References are small matrix products, in as many processes as the machine has cores. OpenBLAS's threads would wait for
# each other and for a core by spinning: in a profile of test_masking that was most of the time. Processes that tests
# start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

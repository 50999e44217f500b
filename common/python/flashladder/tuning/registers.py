"""What ptxas gives a sample of configurations, recorded, so that the model's formula for registers can be held to it.

`make tune ARGS=--registers` builds the sample for sm_90 (no GPU needed) and writes it into the record of the machine
code.
"""

import concurrent.futures
import random
from itertools import product
from pathlib import Path

from flashladder.building import build
from flashladder.core.console import progress
from flashladder.measuring import machine_code, recorded
from flashladder.tuning import instances, rules, space
from flashladder.tuning.configuration import Configuration, of_stage

ARCH = 90
FLAGS = ("async_copy", "eager", "swizzled", "fast_softmax", "skip_rescale", "lean", "lean_ldmatrix")
COUNT = 40  # drawn at random, beside the stages' flags


def sample() -> list[Configuration]:
    """The flags of stages 04 to 11, and configurations drawn from the full space and from all settings of the flags."""
    stages = [of_stage(number, "bf16", d) for number in range(4, 12) for d in (64, 128)]
    full = [one for d in (64, 128) for one in space.full("bf16", d)]
    choices = ((64, 128), ((64, 64, 4), (128, 32, 4), (128, 64, 8)), (0, 2), (1, 2), *[(False, True)] * len(FLAGS))
    flags = [
        Configuration("bf16", d, *tile, load_Q=load, load_K=load, load_V=load, kv_stages=kv_stages,
                      **dict(zip(FLAGS, values, strict=True)))
        for d, tile, load, kv_stages, *values in product(*choices)
    ]  # fmt: skip
    generator = random.Random(1)
    drawn = [
        one
        for pool, count in ((full, 3 * COUNT // 4), (flags, COUNT // 4))
        for one in generator.sample([one for one in pool if not rules.refusals(one)], count)
    ]
    return list(dict.fromkeys([*stages, *drawn]))


def write_record() -> Path:
    """Builds the sample side by side and writes what ptxas said."""
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        configurations = sample()
        built = pool.map(lambda one: instances.build(one, ARCH), configurations)
        rows = [
            {"configuration": str(one.configuration), "registers": one.registers, "spill_bytes": one.spill_bytes}
            for one in progress(built, "ptxas", total=len(configurations))
        ]
    # No date and no commit: the hash says of which kernel this is, and the same kernel gives the same file.
    made = {"provenance": {"device": f"sm_{ARCH}", "toolkit": machine_code.toolkit()}}
    made |= {"kernel_sha256": instances.kernel_hash(), "rows": rows}
    return recorded.write(recorded.inside("registers", made), machine_code.record_file(f"sm_{ARCH}"))

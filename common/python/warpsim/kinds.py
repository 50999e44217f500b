"""What each kind of hazard is, in a sentence's part: for reports that other tools show."""

KINDS = {
    "out_of_bounds": "an access outside of its allocation, of its shared variable, or of the block's shared memory",
    "misaligned": "an address or a size that is no multiple of what it must be",
    "uninitialized_shared": "a value of shared memory that no thread has written, where it matters",
    "uninitialized_variable": "a value of a register or a local variable that nothing has written, where it matters",
    "shared_race": "two accesses of shared memory that nothing orders, at least one of them a write",
    "global_race": "two accesses of global memory by threads of a launch that nothing orders, at least one a write",
    "launch_race": "two accesses of global memory by launches, copies or frees that nothing orders, "
    "in streams, graphs and on several devices",
    "noncoherent_read": "a read through the non-coherent cache (`ld.global.nc`, `__ldg()`), a texture or a surface "
    "of what the launch has written",
    "async_pending": "bytes or registers that something asynchronous is still reading or writing",
    "divergent_barrier": "threads that meet a barrier in different ways",
    "deadlock": "no thread of the block can go on",
    "missing_lanes": "a warp-synchronous instruction whose lanes never come, "
    "or a shuffle's read of one that takes no part",
    "invalid_address": "an address of another state space, null, memory that was freed",
    "trap": "the kernel ended itself",
    "assertion": "an `assert` that does not hold",
    "budget": "more instructions or seconds than the launch may take",
    "illegal_instruction": "an instruction that the hardware refuses with these operands",
    "invalid_argument": "a tensor map, a texture or a handle that is none, or does not fit",
    "mbarrier": "an mbarrier misused: never initialised, initialised twice, arrived at too often, "
    "waited for without a look at the result",
    "proxy_fence": "a fence that the asynchronous proxy needs and no thread executes",
    "wgmma": "`wgmma` misused; a note where `ptxas` repairs it",
    "cluster": "another block's shared memory used before that block runs or after it has exited; "
    "barriers of the cluster misused",
    "setmaxnreg": "a note: `setmaxnreg` that `ptxas` leaves out",
}

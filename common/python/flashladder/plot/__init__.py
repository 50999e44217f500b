"""Pictures. Each function returns a Matplotlib Figure; save(figure, file) writes it.

    from flashladder import plot
    plot.save(plot.swizzle(d=128), "swizzle.png")

Colours are told apart by colour-blind readers, and whatever a colour says a text or a hatch says too.
"""

from flashladder.plot.cards import card
from flashladder.plot.climbing import climb, front_picture
from flashladder.plot.errors import error_map
from flashladder.plot.fragments import mma_fragments, registers
from flashladder.plot.iteration import iteration
from flashladder.plot.machine_code import instruction_mix, order, profiler_samples, profiler_stalls, profiler_wavefronts
from flashladder.plot.masking import block_orders, tile_kinds
from flashladder.plot.roofline import decode_roofline, limits, roofline, waves
from flashladder.plot.softmax import online_softmax
from flashladder.plot.style import save
from flashladder.plot.swizzle import bank_grid, sectors, swizzle, swizzle_bits
from flashladder.plot.throughput import ablations, points, throughput
from flashladder.plot.transfers import ring, timeline, transfers
from flashladder.plot.tuning import configurations, tuning_flags, tuning_lengths, tuning_predicted, tuning_tiles
from flashladder.plot.warps import warps

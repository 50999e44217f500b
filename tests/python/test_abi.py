"""The ctypes structures agree with attention.h, attention_backward.h, attention_decode.h and attention_ring.h, field by
field, as C++ lays them out."""

import ctypes
import subprocess

from hostcc import compile_cpp

from flashladder.core import abi

STRUCTURES = [
    abi.FlashTensor,
    abi.FlashParams,
    abi.FlashDescription,
    abi.FlashBackwardParams,
    abi.FlashBackwardDescription,
    abi.FlashDecodeParams,
    abi.FlashDecodeDescription,
    abi.FlashRingParams,
    abi.FlashRank,
    abi.FlashRingPiece,
    abi.FlashRingDescription,
]


def test_layout_and_numbers_of_types(tmp_path):
    lines = ["#include <cstddef>", "#include <cstdio>", '#include "attention_backward.h"']
    lines += ['#include "attention_decode.h"', '#include "attention_ring.h"']
    lines += [f"static_assert(FLASH_{name.upper()} == {number});" for name, number in abi.TYPE_NUMBERS.items()]
    lines += ["int main() {"]
    for structure in STRUCTURES:
        name = structure.__name__
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in structure._fields_:
            member = f"(({name} *)nullptr)->{field}"
            lines.append(f'  printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof({member}));')
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join([*lines, "}"]))
    text = subprocess.run([compile_cpp(source, tmp_path / "layout")], capture_output=True, text=True).stdout
    in_c = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in text.splitlines()}
    in_python = {}
    for structure in STRUCTURES:
        in_python[structure.__name__] = (ctypes.sizeof(structure),)
        for field, _ in structure._fields_:
            descriptor = getattr(structure, field)
            in_python[f"{structure.__name__}.{field}"] = (descriptor.offset, descriptor.size)
    assert in_python == in_c

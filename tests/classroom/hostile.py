"""Submissions that are to cost the grader more than its limits, from a compact list: patterns that backtrack, texts
that grow, archives that unpack to more than there is, kernels that do not end.

    python tests/classroom/hostile.py FOLDER

writes them for stage 05's exercise tile_offset, beside two honest ones.
"""

import io
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from flashladder.classroom import exercise

STAGE, EXERCISE, FILE = 5, "tile_offset", "05_swizzle.cu"
HONEST = ("honest_solution", "honest_stub")
KIB = 1024

# Repeated up to nearly what a file may have, as an answer: each was, or could be, more than linear for somebody.
REPEATED = {
    "empty_comments_behind_a_hash": "#/**/",
    "comments_that_do_not_end": "/* ",
    "semicolons": ";\n",
    "hashes": "#\n",
    "hashes_in_a_line": "# ",
    "hash_hash": "##",
    "digraphs": "%:",
    "trigraphs": "??=",
    "splices": "\\\n",
    "splices_with_blanks": "\\  \n",
    "backslashes": "\\",
    "quotes": '"',
    "apostrophes": "'",
    "raw_strings_that_do_not_end": 'R"(',
    "raw_strings_of_many_names": 'R"abcdefghijklmno(',
    "slashes": "/",
    "stars": "*/",
    "blanks": " ",
    "tabs": "\t",
    "line_ends": "\n",
    "carriage_returns": "\r",
    "form_feeds": "\f",
    "separators": "\x1c",
    "line_separators": "\u2028",
    "null_characters": "\0",
    "pragmas": "#pragma GCC x\n",
    "pragma_operators": '_Pragma("x") ',
    "pragma_operators_open": "_Pragma(",
    "includes": '#include "/etc/passwd"\n',
    "includes_spliced": '#inc\\\nlude "/etc/passwd"\n',
    "opening_marks": "// >>> write: tile_offset (3 points)\n",
    "closing_marks": "// <<< end of tile_offset\n",
    "carried_marks": "// === tile_offset: your answer in 05_swizzle.cu\n",
    "parentheses": "(",
    "closing_parentheses": ")",
    "braces": "{",
    "closing_braces": "}",
    "brackets": "[",
    "angles": "<",
    "templates": "a<b<",
    "colons": "::",
    "minus": "- ",
    "not": "!",
    "casts": "(int)",
    "ternaries": "1?1:",
    "ifs": "if(1)",
    "elses": "if(1);else ",
    "dots": ". ",
    "dot_include": ". include ",
    "asm_statements": 'asm("");',
    "incbin": 'asm(".incbin \\"/etc/passwd\\"");\n',
    "lambdas": "[]{",
    "digit_separators": "1'",
    "digits": "9",
    "letters": "a",
    "underlines": "_",
    "utf8": "\u00fc",
    "emoji": "\U0001f600",
    "right_to_left": "\u202e",
    "words": "x ",
    "returns": "return 0;\n",
    "attributes": "[[",
    "defines": "#define A A A\n",
    "ifdefs": "#ifdef A\n",
    "endifs": "#endif\n",
    "elifs": "#elif 1\n",
    "errors": "static_assert(false);\n",
    "unknown_names": "no_such_name;\n",
    "declarations": "int i;\n",
    "printf_of_numbers": '"%n" ',
    "markdown": "![x](http://evil/) ",
    "html": "<script>alert(1)</script>",
    "formulas": "=cmd|' /C calc'!A0 ",
    "escape_sequences": "\x1b[2J",
    "backticks": "```\n",
    "shell": "$(reboot) `reboot` ;reboot;\n",
    "percent": "%s%n",
    "braces_of_python": "{0.__class__}",
    "dollars": "$",
}

# Whole answers: what compiles for ever, or runs for ever.
ANSWERS = {
    "endless_loop": "for (volatile int i = 1; i;) i = 1; return 0;",
    "endless_count": "for (volatile unsigned i = 1; i; i += 2); return 0;",
    "endless_clock": "while (clock64() >= 0) {} return 0;",
    "endless_sleep": "while (clock64() >= 0) __nanosleep(1 << 20); return 0;",
    "endless_printing": 'for (;;) printf("%1000d", row); return 0;',
    "endless_memory": "for (;;) if (!malloc(1 << 20)) __trap(); return 0;",
    "endless_barrier": "while (true) __syncthreads(); return 0;",
    "half_of_a_barrier": "if (threadIdx.x < 64) __syncthreads(); else while (clock64() >= 0) {} return 0;",
    "a_lock": "__shared__ int lock; while (atomicCAS(&lock, 0, 1)) {} return 0;",
    "a_trap": "__trap(); return 0;",
    "a_breakpoint": "__brkpt(); return 0;",
    "a_failed_assertion": 'asm volatile("trap;"); return 0;',
    "far_away": "return 1 << 28;",
    "before_the_beginning": "return -(1 << 20);",
    "misaligned": "return row * d_head + c * 8 + 1;",
    "null": "*reinterpret_cast<volatile int *>(0) = 1; return 0;",
    "a_random_address": "*reinterpret_cast<volatile int *>(0x7fff00000000ull) = 1; return 0;",
    "code_as_data": "return *reinterpret_cast<volatile int *>(&flash_kernel<T, d_head>);",
    "recursion": "auto f = [](auto &&self, int n) -> int { return n ? self(self, n + 1) : 0; }; return f(f, 1);",
    "deep_stack": "volatile int large[1 << 20]; large[row] = c; return large[row + 1];",
    "large_shared": "__shared__ int large[1 << 20]; large[row] = c; return large[row];",
    "asm_loop": 'asm volatile("L: bra L;"); return 0;',
    "asm_that_is_none": 'asm volatile("no such instruction;"); return 0;',
    "asm_of_another_kernel": 'asm volatile("} .entry evil() {"); return 0;',
    "asm_include": 'asm volatile(".include \\"/etc/passwd\\""); return 0;',
    "asm_file": 'asm volatile(".file 9 \\"/etc/passwd\\""); return 0;',
    "macros_that_grow": "\n".join(
        [
            "#define A0 x,x,x,x",
            *(f"#define A{n} A{n - 1},A{n - 1},A{n - 1},A{n - 1}" for n in range(1, 16)),
            "int x = 0;",
        ]
    )
    + "\nint y[] = {A15}; return y[row];",
    "templates_that_grow": "return Endless<28, 1>::value;",
    "a_constant_that_takes_for_ever": (
        "constexpr auto f = [] { long n = 0; for (long i = 0; i < 1L << 40; ++i) n += i; return n; };"
        " constexpr long v = f(); return v;"
    ),
    "a_large_array": "static const int large[1 << 28] = {1}; return large[row];",
    "a_deep_expression": "return " + "(" * 20000 + "1" + ")" * 20000 + ";",
    "many_additions": "return " + "1+" * 100000 + "1;",
    "many_variables": "".join(f"volatile int v{n} = {n};" for n in range(9000)) + "return 0;",
    "many_branches": "".join(f"if (row == {n}) c += {n};" for n in range(9000)) + "return c;",
    "unrolled": "int n = 0;\n#pragma unroll\nfor (int i = 0; i < 1 << 20; ++i) n += n * i ^ row;\nreturn n;",
    "unrolled_twice": (
        "int n = 0;\n#pragma unroll\nfor (int i = 0; i < 999; ++i)\n#pragma unroll\nfor (int j = 0; j < 999; ++j)\n"
        "n += n * i ^ j;\nreturn n;"
    ),
    "end_of_the_function": "return 0; } } } } static int x = 1; namespace { namespace { namespace {",
    "another_kernel": "return 0; } __global__ void other() {",
    "a_constructor": 'return 0; } static int early = system("reboot"); static int late() { return 0;',
    "line_directive": '#line 1 "/etc/passwd"\nreturn 0;',
    "has_include": "#if __has_include(</etc/passwd>)\nreturn 0;\n#endif\nreturn 1;",
    "embed": 'int x[] = {\n#embed "/etc/passwd"\n}; return x[0];',
    "pragma_push_macro": '#pragma push_macro("x")\nreturn 0;',
    "hidden_in_a_raw_string": 'R"(\n#include "/etc/passwd"\n)"; return 0;',
    "hidden_behind_a_comment": '/*\n*/ #include "/etc/passwd"\nreturn 0;',
    "pasted_pragma": '#define P(a, b) a##b\nP(_Prag, ma)("GCC dependency \\"/etc/passwd\\"") return 0;',
    "undefined_keywords": "#define return\n#define int\n#define if while\nreturn 0;",
}


def tar(members: list[tuple[tarfile.TarInfo | str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, data in members:
            member = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def tar_kind(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def zip_of(members: list[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def of_a_large_dictionary(data: bytes) -> bytes:
    """An xz file that asks for a dictionary of 4 GiB."""
    packed = bytearray(lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]))
    packed[packed.index(b"\x21\x01", 12) + 2] = 40
    end = 12 + 4 * (packed[12] + 1)
    packed[end - 4 : end] = struct.pack("<I", zlib.crc32(bytes(packed[12 : end - 4])))
    return bytes(packed)


def archives(text: bytes) -> Iterator[tuple[str, bytes]]:
    """(file name, content); in each something is wrong besides a good kernel, or in its place."""
    zeros = bytes(64 << 20)
    links = {"symbolic": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
    for name, kind in links.items():
        for to in ("/etc/passwd", "../../secret", "other"):
            yield f"{name}_link_{to.strip('./').replace('/', '_')}.tar", tar([(tar_kind(FILE, kind, to), b"")])
    for name, kind in {"block": tarfile.BLKTYPE, "character": tarfile.CHRTYPE}.items():
        yield f"{name}_device.tar", tar([(tar_kind("dev", kind), b""), (FILE, text)])
    yield "fifo.tar", tar([(tar_kind(FILE, tarfile.FIFOTYPE), b"")])
    for number, name in enumerate(("/" + FILE, "../" + FILE, "a/../../" + FILE, "..\\" + FILE, "C:\\" + FILE)):
        yield f"outside_{number}.tar", tar([(name, text)])
        yield f"outside_{number}.zip", zip_of([(name, text)])
    bomb = tar([("zeros", zeros), ("more", zeros), ("still_more", zeros), (FILE, text)])
    yield "bomb.tar.xz", lzma.compress(bomb, preset=0)
    yield "bomb.tar.gz", zlib.compress(bomb, 1, 31)
    yield "bomb.zip", zip_of([(FILE, zeros)])
    yield "bomb_in_a_bomb.zip", zip_of([("inner.zip", zip_of([(FILE, zeros)]))])
    yield "many_entries.zip", zip_of([(f"{n}.txt", b"") for n in range(30_000)], zipfile.ZIP_STORED)
    yield "many_entries.tar", tar([(f"{n}.txt", b"") for n in range(12_000)])
    yield "dictionary.tar.xz", of_a_large_dictionary(tar([(FILE, text)]))
    yield "lzma_in_zip.zip", zip_of([(FILE, text)], zipfile.ZIP_LZMA)
    lie = bytearray(zip_of([(FILE, bytes(4 << 20))]))
    place = lie.find(b"PK\1\2")
    lie[place + 24 : place + 28] = struct.pack("<I", 100)
    yield "lies_about_its_size.zip", bytes(lie)
    encrypted = bytearray(zip_of([(FILE, text)]))
    encrypted[6] |= 1
    encrypted[encrypted.find(b"PK\1\2") + 8] |= 1
    yield "encrypted.zip", bytes(encrypted)
    for kind in ("zip", "tar", "tar.gz", "tar.bz2", "tar.xz"):
        yield f"damaged.{kind}", b"this is no archive" * 1000
        yield f"empty.{kind}", b""
    yield "cut.zip", zip_of([(FILE, text)])[:-30]
    yield "cut.tar.gz", zlib.compress(tar([(FILE, text)]), 9, 31)[:-40]
    yield "cut.tar.xz", lzma.compress(tar([(FILE, text)]))[:-40]
    link = zipfile.ZipInfo(FILE)
    link.external_attr = 0o120777 << 16
    yield "link.zip", zip_of([(link, b"/etc/passwd")])
    yield "two_of_a_name.zip", zip_of([("a/" + FILE, text), ("b/" + FILE, text)])
    yield "nothing_in_it.zip", zip_of([("readme.txt", b"")])
    deep = "/".join("d" * 5 for _ in range(400))
    yield "very_deep.tar", tar([(f"{deep}/x", b""), (f"{deep}/y", b"")])
    huge = tarfile.TarInfo("huge")
    huge.size = 1 << 40
    yield "says_a_terabyte.tar", huge.tobuf() + b"x" * 1024
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1 << 33
    yield "a_header_of_gigabytes.tar", header.tobuf() + b"x" * 1024


def handed_in(answer: str) -> str:
    one = exercise.get(STAGE, EXERCISE)
    text = exercise.starter(STAGE, [EXERCISE])
    begin, end = text.index(one.opening) + len(one.opening), text.index(one.closing)
    return f"{text[:begin]}\n{answer}\n{text[end:]}"


def write(folder: Path) -> list[str]:
    """The names of all hostile ones."""
    folder.mkdir(parents=True)
    one = exercise.get(STAGE, EXERCISE)
    frame = len(handed_in("").encode())
    names = []

    def put(name: str, data: bytes) -> None:
        names.append(name)
        (folder / name).mkdir()
        (folder / name / FILE).write_bytes(data)

    for name, piece in REPEATED.items():
        times = (250 * KIB - frame) // len(piece.encode())
        put(f"repeated_{name}", handed_in(piece * times).encode())
    for name, answer in ANSWERS.items():
        put(f"answer_{name}", handed_in(answer).encode())
    for name, piece in list(REPEATED.items())[:22]:  # outside of the marks, where nothing is taken
        put(
            f"outside_{name}", (handed_in(one.solution) + piece * ((250 * KIB - frame) // len(piece.encode()))).encode()
        )
    put("too_large", b"/" * (1 << 19))
    put("no_text", bytes(range(256)) * 100)
    put("utf16", handed_in(one.solution).encode("utf-16"))
    put("empty", b"")
    for name, data in archives(handed_in(one.solution).encode()):
        names.append(f"archive_{name}")
        (folder / names[-1]).write_bytes(data)
    (folder / "a_link").symlink_to("/etc")
    (folder / "a_pipe").mkdir()
    import os

    os.mkfifo(folder / "a_pipe" / FILE)
    names += ["a_link", "a_pipe"]
    for name, answer in zip(HONEST, (one.solution, one.stub)):
        (folder / name).mkdir()
        (folder / name / FILE).write_text(handed_in(answer))
    return names


if __name__ == "__main__":
    print(f"{len(write(Path(sys.argv[1])))} hostile submissions in {sys.argv[1]}")

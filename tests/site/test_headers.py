"""Headers' declarations with their comments, and the pages that are made of them."""

import re

import pytest

from flashladder.core.paths import ROOT
from flashladder.site import header_pages, headers

SAMPLE = """// A head.
#pragma once
namespace some {

// How it went.
enum class Way : int {
    good,      // as hoped
    bad = 7,
    count_,
};

// A thing, with
// two lines.
struct Thing {
    // in bytes
    int size = 0, rest = 1;
    const char *text{};  // its name
    std::map<std::string, int> of;
    int twice() const { return 2 * size; }
    // [x][y]
    float grid[3];
};
struct Forward;

// Adds {n} to it; "a \\" (".
template <int n>
__device__ inline void add(int (&it)[2],
                           int much) {
    asm("{;" : "+r"(it[0]));
}
inline void add(Thing *it) { add(it, "});"); }

template <>
void add<3>(int (&it)[2], int much) {}

void nobody_says_what();
}  // namespace some
"""


def test_declarations_have_their_comments():
    way, thing, add = headers.read(SAMPLE)
    assert (way.kind, way.names, way.comment) == ("enum", ["Way"], "How it went.")
    assert [(value.names, value.comment) for value in way.members] == [(["good"], "as hoped"), (["bad"], "")]
    assert (thing.kind, thing.comment) == ("struct", "A thing, with\ntwo lines.")
    assert [(member.names, member.comment) for member in thing.members] == [
        (["int size", "int rest"], "in bytes"),
        (["const char * text"], "its name"),
        (["std::map<std::string, int> of"], ""),
        (["float grid[3]"], "[x][y]"),
    ]
    assert add.names == ["template <int n> void add(int (&it)[2], int much)", "void add(Thing *it)"]
    assert add.comment == 'Adds {n} to it; "a \\" (".'


@pytest.mark.parametrize("place", header_pages.PAGES)
def test_no_function_or_struct_of_a_header_is_missing(place):
    one = header_pages.PAGES[place]
    page = header_pages.page(one)
    for name in one.files:
        text = re.sub(r"//.*", "", (ROOT / name).read_text())
        wanted = set(re.findall(r"^(?:typedef )?struct (\w+) \{", text, re.M))
        if "function" in one.kinds:
            wanted |= set(re.findall(r"^(?!template)\w[\w *]*?(\w+)\([^;]*?\)(?: \{|;)$", text, re.M))
        assert wanted or name.endswith("hazard_kind.h"), "the test finds nothing to look for"
        missing = {name for name in wanted if not re.search(rf"\b{name}\b", page)}
        assert not missing, f"{place} says nothing of {missing}"


def test_a_comment_is_no_markup():
    assert header_pages.prose("a * b_c[i] `x` |y| z_ ptx.w_1 f() m_n.py ` w") == (
        r"a \* ``b_c``[i] ``x`` \|y\| z\_ ``ptx.w_1`` ``f()`` ``m_n.py`` \` w"
    )

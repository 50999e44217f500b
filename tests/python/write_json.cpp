// Writes with common/include/json_writer.h what test_host_programs.py reads back.
#include "json_writer.h"

int main() {
    json::Writer w;
    w.open('{').key("quotes \" and \\").string("tab\t, line\n, bell\a, \xc3\xa9, \xff, \xc0\x80, cut \xe2\x82");
    w.key("numbers").open('[').number(~0ull).integer(-7).real(0.1).real(0.0 / 0.0).real(1e308 * 10).null().close(']');
    const int triple[3] = {1, -2, 3};
    w.key("empty").open('{').close('}').key("triple").triple(triple).key("right").boolean(true).close('}');
    std::printf("%s", w.take().c_str());
}

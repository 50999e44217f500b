"""What `make page` serves: the site to this machine alone, the compiler to its reader alone."""

import http.client
import json
import re
import threading
from dataclasses import replace

import pytest

from flashladder.building import build
from flashladder.classroom import isolation
from flashladder.commands import page
from flashladder.core.errors import FlashLadderError
from flashladder.ladder import stages
from flashladder.site import page_kernels, page_server

STAGE = stages.get("tensor_cores")
SYMBOL = "_Z12flash_kernelI13__nv_bfloat16Li128EEv11FlashParams"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    for name in ("run.html", "write.html"):
        (folder / name).write_text("<html><head><title>t</title></head></html>")
    (folder / "other.html").write_text("<p>other</p>")
    build.configure()
    with page_server.Server(folder, page_server.Compiler(page.compiler_level()), 0) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


def ask(server, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, dict, bytes]:
    """Status, headers and body of the answer; headers by names with _ for -, "" leaves one out."""
    asked = {"Host": f"127.0.0.1:{server.server_port}"} | {name.replace("_", "-"): one for name, one in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.putrequest(method, path, skip_host=True)
    for name, text in asked.items():
        if text:
            connection.putheader(name, text)
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, dict(answer.headers), answer.read()
    connection.close()
    return found


def compiled(server, body: bytes, **headers: str) -> tuple[int, dict]:
    """As the page asks, but for these headers."""
    usual = {
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "X_FlashLadder_Key": server.key,
        "Content_Type": "application/json",
        "Content_Length": str(len(body)),
    }
    status, _, answer = ask(server, "POST", "/compile", body, **usual | headers)
    return status, json.loads(answer)


def wanted(source: str, stage: str = STAGE.id, symbols=(SYMBOL,)) -> bytes:
    return json.dumps({"stage": stage, "source": source, "symbols": list(symbols)}).encode()


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"


def test_the_key_is_for_who_has_the_address_or_its_cookie(server):
    _, headers, body = ask(server, "GET", "/run.html")
    assert b"compiler" not in body and "Set-Cookie" not in headers
    assert b"compiler" not in ask(server, "GET", "/run.html?key=x")[2]
    _, headers, body = ask(server, "GET", server.address.partition(str(server.server_port))[2])
    assert re.search(rb'<meta name="flashladder-compiler" content="([^"]+)"', body)[1].decode() == server.key
    assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    _, headers, body = ask(server, "GET", "/run.html", Cookie=headers["Set-Cookie"].partition(";")[0])
    assert server.key.encode() in body
    assert server.key.encode() in ask(server, "GET", f"/write.html?key={server.key}")[2]
    assert ask(server, "GET", "/other.html")[2] == b"<p>other</p>"


@pytest.mark.parametrize("host", ("", "elsewhere.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.elsewhere.example"))
@pytest.mark.parametrize("method", ("GET", "HEAD", "POST"))
def test_another_name_of_this_machine_is_refused(server, host, method):
    assert ask(server, method, "/run.html", Host=host)[0] == 403


@pytest.mark.parametrize(
    "headers",
    (
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"X_FlashLadder_Key": ""},
        {"X_FlashLadder_Key": "x"},
    ),
)
def test_another_page_may_not_compile(server, headers):
    status, answer = compiled(server, wanted("x"), **headers)
    assert status == 403 and "error" in answer


@pytest.mark.parametrize(
    "body, headers, status, words",
    (
        (b"", {"Content_Length": str(page_server.MOST_BYTES + 1)}, 413, "more than"),
        (b"", {"Content_Length": ""}, 411, "length"),
        (b"", {"Content_Length": "-1"}, 411, "length"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "JSON"),
        (b"{", {}, 400, "no JSON"),
        (b"[" * 100_000, {}, 400, "no JSON"),
        (b"[]", {}, 400, "a stage, a source and symbols"),
        (wanted("x", stage="99"), {}, 400, "no stage '99'"),
        (wanted("x", stage="00"), {}, 400, "no kernel"),
        (wanted("x", symbols=["main"]), {}, 400, "no such kernels"),
        (wanted("x", stage="00"), {}, 400, "stage 00 has no kernel"),
        (wanted("x", symbols=[]), {}, 400, "no such kernels"),
    ),
)
def test_what_makes_no_sense_is_refused_in_words(server, body, headers, status, words):
    found, answer = compiled(server, body, **headers)
    assert found == status and words in answer["error"]


def test_nothing_else_takes_what_is_sent(server):
    assert ask(server, "POST", "/run.html", b"", Content_Length="0")[0] == 404
    assert ask(server, "PUT", "/compile", b"", Content_Length="0")[0] == 501


def test_a_kernel_becomes_ptx_with_its_lines(server):
    status, answer = compiled(server, wanted(STAGE.kernel.read_text()))
    assert status == 200 and set(answer) == {"ptx"}
    assert re.findall(r"\.entry (\w+)", answer["ptx"]) == [SYMBOL]
    assert re.search(r'\.file\s+\d+ "kernel.cu"', answer["ptx"])
    again = compiled(server, wanted(STAGE.kernel.read_text()))
    assert again == (200, answer)


@pytest.mark.long
@pytest.mark.parametrize("which", ("short_ends", "backward_wgmma"))
def test_kernels_of_other_parts_become_ptx(server, which):
    """With the parameters of their own, tensor maps among them."""
    stage = stages.entry(which)
    build.build([f"stage_{stage.id}", "warpsim-inspect"])
    known = [symbol for name, symbol in page_kernels.instances(stage) if "<__nv_bfloat16, 128" in name]
    assert any("Maps" in symbol for symbol in known)
    status, answer = compiled(server, wanted(stage.kernel.read_text(), stage.id, known))
    assert status == 200 and set(answer) == {"ptx"}, answer
    assert set(known) <= set(re.findall(r"\.entry (\w+)", answer["ptx"]))


def test_errors_are_told_by_line(server):
    lines = STAGE.kernel.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if "__syncthreads();" in line)
    lines[at] = "        __syncthread();"
    status, answer = compiled(server, wanted("\n".join(lines)))
    assert status == 200 and set(answer) == {"words", "diagnostics"}
    assert [one["line"] for one in answer["diagnostics"]] == [at + 1]
    assert "__syncthread" in answer["diagnostics"][0]["message"]


def test_files_of_this_machine_are_not_there_where_it_can_isolate(server, tmp_path):
    try:
        isolation.choose()
    except FlashLadderError:
        pytest.skip("no isolation on this machine")
    secret = tmp_path / "secret.h"
    secret.write_text("not for everybody\n")
    status, answer = compiled(server, wanted(f'#include "{secret}"\n'))
    assert status == 200 and "not for everybody" not in json.dumps(answer)
    assert answer["diagnostics"][0]["line"] == 1


@pytest.mark.long
def test_the_compilers_time_is_limited(server):
    """Each level of the template makes two of the next."""
    endless = """
template <int n, long m> struct s { static constexpr long v = s<n - 1, 2 * m>::v + s<n - 1, 2 * m + 1>::v; };
template <long m> struct s<0, m> { static constexpr long v = m; };
constexpr long x = s<50, 1>::v;
"""
    few = replace(page_server.COMPILING, seconds=2)
    compiler = page_server.Compiler(page.compiler_level(), few)
    answer = compiler.compile(json.loads(wanted(endless)))
    assert "not ready within 2 s" in answer["words"] and answer["diagnostics"] == []


def test_an_error_in_a_header_is_told_at_the_line_that_uses_it():
    said = """/include/ptx.cuh(33): error: static assertion failed with "too large"
      static_assert(sizeof(T) == 2, "too large");
      ^
          detected during instantiation of "void f<T>() [with T=int]" at line 58 of kernel.cu

kernel.cu(60): error: identifier "x" is undefined
kernel.cu:9:10: fatal error: no.h: No such file or directory
instances.cu(2): error: flash_kernel is not a template
3 errors detected in the compilation of "instances.cu".
"""
    assert page_server.diagnostics(said) == [
        {"line": 58, "message": 'static assertion failed with "too large"'},
        {"line": 60, "message": 'identifier "x" is undefined'},
        {"line": 9, "message": "no.h: No such file or directory"},
        {"line": 0, "message": "flash_kernel is not a template"},
    ]


def test_a_site_that_is_not_built_is_told_so(monkeypatch):
    monkeypatch.setattr(page.run_page, "is_built", lambda: False)
    with pytest.raises(FlashLadderError, match="make browser docs"):
        page.run(0)

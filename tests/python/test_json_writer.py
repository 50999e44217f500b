"""What the C++ programs write as JSON can be read back, whatever a name or a number is."""

import json
import subprocess

from hostcc import HERE, compile_cpp


def test_what_is_written_can_be_read(tmp_path):
    program = compile_cpp(HERE / "write_json.cpp", tmp_path / "write_json")
    text = subprocess.run([program], capture_output=True, check=True).stdout.decode("utf-8")
    wrong = "\ufffd"  # stands for each byte that is no UTF-8
    assert json.loads(text) == {
        'quotes " and \\': f"tab\t, line\n, bell\a, é, {wrong}, {wrong}{wrong}, cut {wrong}{wrong}",
        "numbers": [2**64 - 1, -7, 0.1, None, None, None],
        "empty": {},
        "triple": [1, -2, 3],
        "right": True,
    }, f"read back from {text}"

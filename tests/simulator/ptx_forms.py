"""Forms of PTX instructions, generated from the manual's syntax lines: every choice of modifiers and types.

The lines are broader than the manual where that is shorter, so ptxas says which of the forms are PTX; warpsim-inspect
says which the simulator takes. Textures and wgmma are not here.

    python ptx_forms.py               # compares them all and lists where the two differ
    python ptx_forms.py cvt mma       # these opcodes only
"""

import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ptx_syntax import LINES, bits, matrix_lines, wmma_lines

HEAD = """.version 9.0
.target {target}
.address_size 64
.global .align 16 .b8 array[1024];
.const .align 16 .b8 constants[1024];
"""
REGISTERS = """    .reg .pred p, q;
    .reg .b16 h<8>;
    .reg .b32 r<32>;
    .reg .b64 d<16>;
    .reg .b128 x<2>;
    .shared .align 16 .b8 tile[1024];
    .local .align 16 .b8 own[1024];
"""
NAME = {8: "h", 16: "h", 32: "r", 64: "d", 128: "x"}


def expand(syntax):
    """The choices of a line: ".name" must be there, ".{a,b}" is one of these, "{.a,.b}" one of these or none."""
    choices = []
    opcode, rest = re.match(r"([a-z0-9]+)(.*)", syntax).groups()
    for required, group, single in re.findall(r"(\.?)\{([^}]*)\}|\.([^.{]+)", rest):
        names = [single] if single else [name.lstrip(".") for name in group.split(",")]
        choices.append(names if single or required else ["", *names])
    for chosen in itertools.product(*choices):
        yield opcode, [modifier for modifier in chosen if modifier]


def forms_of(syntax, operands):
    """The instructions of a line. In `operands`, $0 is a register as wide as the last type among the modifiers, $1 as
    the one before it; $w is twice as wide as $0; <r4> is a vector of four."""
    for opcode, modifiers in expand(syntax):
        types = [bits(m) for m in reversed(modifiers) if bits(m)] + [32, 32]
        if modifiers and modifiers[0] == "pred" or not modifiers:
            types[:0] = [32]
        names = [NAME[types[0]], NAME[types[1]], NAME[min(128, 2 * types[0])]]
        if "pred" in modifiers[-1:]:
            names[0] = "p"
        text = operands
        for k, name in zip("01w", names):
            text = re.sub(rf"\${k}(\d*)", lambda m, n=name: "p" if n == "p" else n + (m[1] or "1"), text)
        text = re.sub(r"<([hrdx])(\d+)>", lambda m: "{" + ", ".join(f"{m[1]}{k}" for k in range(int(m[2]))) + "}", text)
        yield f"{'.'.join([opcode, *modifiers])} {text}".strip()


def every_form():
    forms = {}
    for syntax, operands in [*LINES, *matrix_lines(), *wmma_lines()]:
        first = re.match(r"\{([a-z0-9,]+)\}(.*)", syntax)
        for line in [name + first[2] for name in first[1].split(",")] if first else [syntax]:
            for form in forms_of(line, operands.replace("{{", "{").replace("}}", "}")):
                forms[form] = None
    return list(forms)


def wrong_forms(forms):
    """From forms that are PTX, such as are likely not to be: a modifier dropped, doubled, from elsewhere, or moved."""
    result = {}
    for form in forms:
        name, _, operands = form.partition(" ")
        opcode, *modifiers = name.split(".")
        for k in range(len(modifiers)):
            result[f"{'.'.join([opcode, *modifiers[:k], *modifiers[k + 1 :]])} {operands}"] = None
            result[f"{'.'.join([opcode, *modifiers[:k], modifiers[k], *modifiers[k:]])} {operands}"] = None
            result[f"{'.'.join([opcode, *modifiers[:k], 'nonsense', *modifiers[k:]])} {operands}"] = None
            result[f"{'.'.join([opcode, *modifiers[k:], *modifiers[:k]])} {operands}"] = None
            if k:
                moved = [*modifiers]
                moved[k - 1], moved[k] = moved[k], moved[k - 1]
                result[f"{'.'.join([opcode, *moved])} {operands}"] = None
        for extra in ("sat", "ftz", "rn", "relu", "u32", "volatile", "sync", "global", "wide", "lo", "satfinite"):
            result[f"{'.'.join([opcode, *modifiers, extra])} {operands}"] = None
            result[f"{'.'.join([opcode, extra, *modifiers])} {operands}"] = None
    return list(result)


def kernel(k, form):
    return f".visible .entry kernel{k}()\n{{\n{REGISTERS}    {form};\n    ret;\n}}\n"


def ptxas_takes(forms, target="sm_90a", ptxas="ptxas", chunk=300):
    """{form: ptxas's complaint, empty where it takes the form}. chunk: how many it is asked about at once; it is asked
    again about those that it has not complained of."""
    complaints = {}
    for first in range(0, len(forms), chunk):
        todo = list(forms[first : first + chunk])
        while todo:
            lines = HEAD.format(target=target).count("\n")
            text, at = HEAD.format(target=target), {}
            for k, form in enumerate(todo):
                body = kernel(k, form)
                at[lines + 3 + REGISTERS.count("\n")] = form
                lines += body.count("\n")
                text += body
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(text)
                file.flush()
                command = [ptxas, f"-arch={target}", "-O0", file.name, "-o", "/dev/null"]
                done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                complaints |= {form: complaints.get(form, "") for form in todo}
                break
            found = {}
            for line, message in re.findall(r", line (\d+); (?:error|fatal)\s*: (.*)", done.stderr):
                if int(line) in at:
                    found.setdefault(at[int(line)], message)
            if not found:
                # A message without a line of ours (labels, code generation): halve until it is one form.
                if len(todo) == 1:
                    found = {todo[0]: done.stderr.strip() or "refused"}
                else:
                    half = len(todo) // 2
                    complaints |= ptxas_takes(todo[:half], target, ptxas, half)
                    complaints |= ptxas_takes(todo[half:], target, ptxas, len(todo) - half)
                    break
            complaints |= found
            todo = [form for form in todo if form not in found]
    return complaints


def simulator_takes(forms, inspect, target="sm_90a", chunk=200):
    """The same of the simulator, which is asked again without the first form that it cannot read."""
    complaints = {}
    for first in range(0, len(forms), chunk):
        todo = list(forms[first : first + chunk])
        while todo:
            text = HEAD.format(target=target) + "".join(kernel(k, form) for k, form in enumerate(todo))
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(text)
                file.flush()
                command = [str(inspect), "--json", "--check", file.name]
                done = subprocess.run(command, capture_output=True, text=True)
            image = json.loads(done.stdout)["images"][0] if done.stdout else {"error": done.stderr}
            if "error" not in image:
                functions = {function["name"]: function for function in image["functions"]}
                for k, form in enumerate(todo):
                    complaints[form] = functions[f"kernel{k}"].get("unsupported", "")
                break
            line = re.search(r"line (\d+)", image["error"])
            size = kernel(0, "x").count("\n")
            at = (int(line[1]) - HEAD.count("\n") - 1) // size if line else len(todo)
            if not 0 <= at < len(todo):
                raise ValueError(image["error"])
            complaints[todo.pop(at)] = image["error"]
    return complaints


def main(opcodes):
    forms = [form for form in every_form() if not opcodes or re.split(r"[. ]", form)[0] in opcodes]
    build = Path(os.environ.get("WARPSIM_BUILD", "build"))
    theirs, ours = ptxas_takes(forms), simulator_takes(forms, build / "bin" / "warpsim-inspect")
    valid = [form for form in forms if not theirs[form]]
    missing = [form for form in valid if ours[form]]
    extra = [form for form in forms if theirs[form] and not ours[form]]
    for form in missing:
        print("missing:", form, "|", ours[form].splitlines()[0])
    for form in extra:
        print("too much:", form, "|", theirs[form])
    print(f"{len(forms)} forms, {len(valid)} valid, {len(missing)} missing, {len(extra)} too much")
    for title, group in (("missing", missing), ("too much", extra)):
        counts = collections.Counter(re.split(r"[. ]", form)[0] for form in group)
        print(title, dict(counts.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])

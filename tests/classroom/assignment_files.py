"""The text of an assignment, for tests."""


def assignment_text(*items: str, sizes: str = "") -> str:
    """The text of an assignment with these [[exercise]]s."""
    written = "\n".join(f"[[exercise]]\n{item}" for item in items)
    return f"""
title = "Small"
deadline = "Friday"
{written}
[[sizes]]
class = "whole tiles"
public = true
problems = [{{ Hq = 1, Nq = 128, Nkv = 128, d_head = 128 }}]
{sizes}
[hidden]
seeds = [2]
[credit]
builds = 0.1
correct = 0.5
hazards = 0.2
technique = 0.2
"""

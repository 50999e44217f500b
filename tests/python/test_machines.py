"""The Dockerfile, the devcontainer and the workflows speak of files and make targets that are there."""

import json
import re

import pytest
from hostcc import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_what_the_dockerfile_copies_is_there():
    copied = [words for line in re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", DOCKERFILE, re.M) for words in line.split()]
    assert {"Makefile", "common/python"} <= set(copied)
    missing = [name for name in copied if not (ROOT / name).exists()]
    assert not missing, f"Dockerfile copies what is not there: {missing}"
    ignored = set((ROOT / ".dockerignore").read_text().split())
    assert {".venv", "build"} <= ignored, "what was made on this machine does not belong into an image"


def test_the_set_up_in_the_image_comes_before_the_kernels():
    """What `make setup` needs is copied by then; a changed kernel does not install everything again."""
    before = DOCKERFILE.partition("RUN make setup")[0]
    assert "pyproject.toml" in before and "common/host" in before and "COPY --chown=ubuntu:ubuntu . ." not in before


def test_the_devcontainer_takes_a_stage_of_the_dockerfile():
    told = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / told["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert told["build"]["target"] in re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.M)
    assert told["postCreateCommand"].split()[0] == "make" and told["postCreateCommand"].split()[1] in targets()


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_targets_that_there_are(file):
    """make -C is another folder's."""
    text = file.read_text()
    called = set(re.findall(r"\bmake ([a-z][a-z-]*)", re.sub(r"install .*", "", text)))
    assert called <= targets() and (called or "make -C " in text), f"{file.name} runs {called - targets()}"


def test_the_two_commands_and_the_site_run_in_workflows():
    text = "".join(file.read_text() for file in WORKFLOWS)
    for command in ("make demo", "make test", "make lint", "make docs", "make test-long"):
        assert re.search(rf"run: .*{command}\b", text), command

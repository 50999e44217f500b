"""The corpus does no harm, fuzzing finds nothing new, and the fuzzer finds what is planted."""

import shlex
import subprocess

import pytest

from flashladder.commands import fuzz
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import build_directory

CORPUS = fuzz.SOURCE / "corpus"
EXECUTIONS = {"ptx": 3_000, "fatbin": 5_000, "maps": 3_000, "kernels": 300}


def replay(program, target, tmp_path):
    files = sorted(fuzz.corpus(target, tmp_path).iterdir())
    assert files, f"{target} has no inputs"
    done = subprocess.run([program, target, "--replay", *files], capture_output=True, text=True, timeout=600)
    last = (done.stdout.splitlines() or ["no input"])[-1]
    assert done.returncode == 0, f"{last} ends the simulator:\n{done.stderr[-6000:]}"


@pytest.fixture(scope="module")
def plain():
    program = build_directory() / "bin" / "warpsim-fuzz"
    assert program.exists(), f"no fuzzer at {program}: run `make build`"
    return program


@pytest.fixture(scope="module")
def sanitized():
    return fuzz.build_fuzzer()


@pytest.mark.parametrize("target", ["ptx", "fatbin", "maps"])
def test_the_corpus_does_no_harm(plain, target, tmp_path):
    replay(plain, target, tmp_path)


def test_the_corpus_is_small():
    assert sum(file.stat().st_size for file in CORPUS.rglob("*")) < 300_000


def random_kernels(plain, tmp_path, *options):
    command = [plain, "kernels", "--findings", tmp_path, "--seed", "1", "--count", "60", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_random_kernels_compute_what_the_host_does(plain, tmp_path):
    done = random_kernels(plain, tmp_path)
    assert done.returncode == 0, done.stdout


def test_a_finding_comes_with_its_input_and_a_command_that_replays_it(plain, tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "not_a_seed").write_text("something else")  # the target ends the process at it
    done = random_kernels(plain, tmp_path, "--corpus", corpus)
    assert done.returncode == 1 and "1 findings" in done.stdout, done.stdout
    command = done.stdout.split("replay: ")[1].splitlines()[0]
    assert subprocess.run(shlex.split(command), capture_output=True).returncode != 0, command
    assert (tmp_path / "kernels-1-0.kernel").read_text() == "something else"


@pytest.mark.parametrize(
    "options, message",
    [
        (["--seed", "-1"], "--seed -1: expected a whole number from 0 to"),
        (["--count", "9x"], "--count 9x: expected a whole number from 0 to"),
        (["--count", "99999999999999999999"], "--count 99999999999999999999: expected a whole number"),
        (["--cpu-seconds", "nan"], "--cpu-seconds nan: expected a number, at least 0"),
        (["--seconds"], "option --seconds wants a value"),
        (["--s", "1"], "option --s may mean --seed, --seconds"),
        (["--forever"], "unknown option --forever"),
        (["more"], "unexpected argument 'more'"),
    ],
)
def test_wrong_arguments_are_refused(plain, tmp_path, options, message):
    done = random_kernels(plain, tmp_path, *options)
    assert done.returncode == 2 and message in done.stderr and not done.stdout, done


def test_the_usage_names_all_targets(plain):
    done = subprocess.run([plain], capture_output=True, text=True)
    assert done.returncode == 2 and f"warpsim-fuzz {'|'.join(fuzz.TARGETS)} " in done.stderr


def planted(plain, tmp_path, word, *options):
    """The fuzzer's end over inputs that do nothing, but for one."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "input").write_text(word + "\n")
    command = [plain, "planted", "--findings", tmp_path, "--corpus", corpus, "--count", "9", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


HARM = {
    "crash": (["--cpu-seconds", "60"], "ends the process: Aborted"),
    "hang": (["--cpu-seconds", "0.5"], "takes too long"),
    "hoard": (["--cpu-seconds", "60"], "takes more than 1024 MiB"),
}


@pytest.mark.parametrize("word", HARM)
def test_each_kind_of_harm_is_a_finding_and_the_rest_runs_on(plain, tmp_path, word):
    options, said = HARM[word]
    done = planted(plain, tmp_path, word, *options)
    assert done.returncode == 1 and "FOUND: an input that " in done.stdout and said in done.stdout, done.stdout
    assert "9 executions" in done.stdout and "1 findings" in done.stdout, done.stdout
    assert (tmp_path / "planted-1-0.txt").read_text() == word + "\n"


def test_a_hang_is_found_also_when_the_time_is_over(plain, tmp_path):
    done = planted(plain, tmp_path, "hang", "--seconds", "0.1", "--cpu-seconds", "0.5")
    assert done.returncode == 1 and "1 findings" in done.stdout, done.stdout


def test_harmless_inputs_are_no_findings(plain, tmp_path):
    done = planted(plain, tmp_path, "fine")
    assert done.returncode == 0 and "9 executions" in done.stdout and "0 findings" in done.stdout, done.stdout


@pytest.mark.parametrize("word, status", [("crash", 1), ("fine", 0)])
def test_the_exit_status_and_the_last_words_say_whether_something_was_found(
    plain, tmp_path, monkeypatch, capfd, word, status
):
    corpus = tmp_path / "corpus" / "planted"
    corpus.mkdir(parents=True)
    (corpus / "input").write_text(word + "\n")
    monkeypatch.setattr(fuzz, "SOURCE", tmp_path)
    monkeypatch.setattr(fuzz, "build_fuzzer", lambda: plain)
    monkeypatch.setattr(fuzz, "folder", lambda: tmp_path)
    assert fuzz.run(1, 1, "planted", count=5) == status
    said = capfd.readouterr().out
    assert ("Found something in planted: see " in said and "/findings." in said) if status else "Nothing found." in said
    assert (tmp_path / "findings" / "planted-1-0.txt").exists() == bool(status)


@pytest.mark.parametrize(
    "numbers, name",
    [((0, 1, 5), "MINUTES"), ((float("nan"), 1, 5), "MINUTES"), ((1, -1, 5), "SEED"), ((1, 1, 0), "COUNT")],
)
def test_numbers_that_make_no_sense_are_refused(numbers, name):
    minutes, seed, count = numbers
    with pytest.raises(FlashLadderError, match=f"^{name}="):
        fuzz.run(minutes, seed, count=count)


@pytest.mark.long
@pytest.mark.parametrize("target", ["ptx", "fatbin", "maps"])
def test_the_corpus_is_clean_under_sanitizers(sanitized, target, tmp_path):
    replay(sanitized, target, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("target", list(EXECUTIONS))
def test_fuzzing_finds_nothing(sanitized, target, capfd):
    # At most 60 s each; a machine that has not run all of them by then has tested fewer.
    status = fuzz.run_target(sanitized, target, seed=1, seconds=60, count=EXECUTIONS[target])
    assert status == 0, capfd.readouterr().out

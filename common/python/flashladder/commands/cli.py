"""The command line: python -m flashladder COMMAND. The Makefile's targets end here."""

import argparse
import dataclasses
import errno
import importlib
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from flashladder.building import build
from flashladder.commands.options import TYPES, add_problem_options, numbers, seconds, seed, settings, size
from flashladder.core import device
from flashladder.core.console import say, simulating, table
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import ROOT
from flashladder.core.problem import Problem
from flashladder.ladder import stages
from flashladder.measuring import bench, detections


def stage_numbers(text: str) -> tuple[int, ...]:
    """ "05,wgmma" -> (5, 15)"""
    try:
        return tuple(stages.entry(part.strip()).number for part in text.split(",") if part.strip())
    except FlashLadderError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def path(text: str) -> Path:
    """The type of options that are files or folders. Not every shell replaces the ~ of `make grade SUBMISSIONS=~/x`."""
    return Path(text).expanduser()


def tuned_stage(text: str) -> str:
    """The name of a stage that has configurations: "23" -> "shapes"."""
    try:
        found = stages.get(text).slug
    except FlashLadderError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found not in ("autotune", "shapes"):
        raise argparse.ArgumentTypeError(f"{found} has no configurations; autotune and shapes have")
    return found


def words(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    defaults = bench.Settings()
    parser.add_argument("--tokens", type=size, default=defaults.tokens, help="B times N, the same for all lengths")
    parser.add_argument("--heads", type=size, default=defaults.heads)
    parser.add_argument("--lengths", type=numbers, default=defaults.lengths, metavar="N,N,...")
    parser.add_argument("--dims", dest="head_dims", type=numbers, default=defaults.head_dims, metavar="D,D")
    parser.add_argument("--dtypes", type=words, default=defaults.dtypes, metavar="T,T", help="bf16, fp16, e4m3")
    parser.add_argument("--stages", type=stage_numbers, default=(), metavar="NN,NN", help="default: all")
    parser.add_argument("--masks", type=words, default=("full", "causal"), metavar="M,M", help="full, causal")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--seconds", type=seconds, default=defaults.seconds, help="of kernel time for each figure")


def settings_of(options) -> bench.Settings:
    for option, told, known in (("masks", options.masks, ("full", "causal")), ("dtypes", options.dtypes, TYPES)):
        for unknown in set(told).difference(known):
            raise FlashLadderError(f"--{option} {unknown}: choose of {', '.join(known)}, with commas between them")
    return dataclasses.replace(
        settings(bench.Settings, options), causal=tuple(mask == "causal" for mask in options.masks)
    )


def later(place: str, *names: str) -> Callable[[argparse.Namespace], int]:
    """The command that a function of the package is: its module is loaded when it is called, for some are slow to
    load and some need what not everyone has. names: the options that are its arguments, in their order."""

    def command(options: argparse.Namespace) -> int:
        module, function = place.rsplit(".", 1)
        found = getattr(importlib.import_module(f"flashladder.{module}"), function)
        return found(*(getattr(options, name) for name in names)) or 0

    return command


def command_stages(options) -> int:
    rows = []
    for stage in stages.all_parts():
        where = device.choose(stage.min_compute)
        rows.append((stage.id, stage.title, stage.way, f"sm_{stage.min_compute}", where.short, stage.technique))
    table("Stages", ["", "title", "way", "needs", "runs on", "technique"], rows)
    return 0


def command_device(options) -> int:
    say(str(device.choose()))
    return 0


def command_build(options) -> int:
    build.build(options.target)
    say(f"Built into {os.path.relpath(build.build_directory(), ROOT)}.")
    return 0


def problem_of(options) -> Problem:
    """What the options ask for. A stage that does not take bf16 runs its own type where none is named."""
    stage = stages.entry(options.stage)
    if options.dtype and options.dtype not in stage.dtypes:
        raise FlashLadderError(f"--dtype {options.dtype}: stage {stage.id} takes {' and '.join(stage.dtypes)}.")
    options.dtype = options.dtype or "bf16"
    return settings(Problem, options)


def command_run(options) -> int:
    from flashladder.ladder import sweep

    stage = stages.get(options.stage)
    where = device.choose(stage.min_compute)
    with simulating() if where.kind == "sim" else nullcontext():
        verdict = sweep.verify(stage, problem_of(options), options.seed)
    where = verdict.result.device if verdict.result else where
    outcome = "verified" if verdict.passed else "WRONG" if verdict.result else "failed"
    say(f"{stage.name} on {where}: {verdict.problem}: {outcome}: {verdict.message}")
    return 0 if verdict.passed else 1


def command_bench(options) -> int:
    from flashladder.commands import throughput

    build.build()
    throughput.bench_or_count(settings_of(options))
    return 0


def command_profile(options) -> int:
    from flashladder.measuring import profile

    stage, problem = stages.get(options.stage), problem_of(options)
    build.build()
    with simulating():
        profile.show(stage, problem)
    return 0


def command_timeline(options) -> int:
    from flashladder.commands import timeline

    return timeline.command(options, problem_of(options))


def command_results(options) -> int:
    from flashladder.commands import results

    changed = results.regenerate()
    say("\n".join(f"regenerated {os.path.relpath(file, ROOT)}" for file in changed) or "All tables and plots are true.")
    return 0


def command_notebooks(options) -> int:
    from flashladder.lessons import notebooks

    if options.exercises:
        return notebooks.write_exercises(options.names)
    if options.lengths:
        return notebooks.show_lengths(options.names)
    if options.save or options.run:
        return notebooks.run(options.names, options.save)
    if options.format:
        return notebooks.format_all()
    return notebooks.check(options.names) if options.check else notebooks.open_lab(options.rest)


def command_assignment(options) -> int:
    from flashladder.commands import classroom

    if not options.name:
        return classroom.list_assignments()
    return classroom.write_assignment(options.name, options.out)


def command_grade(options) -> int:
    from flashladder.commands import classroom

    if options.job_script:
        return classroom.show_job_script(options.scheduler, options.certificates)
    if not options.name or not options.folder:
        raise FlashLadderError("Name both: `make grade ASSIGNMENT=swizzle SUBMISSIONS=folder`.")
    return classroom.grade(settings(classroom.Grading, options))


def command_ablations(options) -> int:
    from flashladder.measuring import ablation_times

    say(f"Results: {ablation_times.run(numbers=options.stages)}")
    return 0


def command_tune(options) -> int:
    from flashladder.commands import tune, tune_shapes
    from flashladder.tuning import decode_table, registers

    if options.decode:
        decode_table.show(options.decode)
        return 0
    if options.registers:
        build.build(stages.get("autotune").targets)
        say(f"Recorded: {os.path.relpath(registers.write_record(), ROOT)}")
        return 0
    if options.stage == "shapes":
        return tune_shapes.run(settings(tune_shapes.Options, options))
    return tune.run(settings(tune.Options, options))


def add_tune_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stage", type=tuned_stage, default="autotune", help="autotune (default) or shapes")
    parser.add_argument("--full", action="store_true", help="a larger space, thousands of configurations")
    parser.add_argument("--d-head", dest="head_dims", type=numbers, default=(64, 128), metavar="D,D")
    parser.add_argument("--dtype", dest="dtypes", type=words, default=("bf16",), metavar="T,T", help="bf16, fp16")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--configs", dest="configurations", type=path, metavar="FILE",
                         help="in place of a space: a configuration on each line")  # fmt: skip
    instead.add_argument("--fastest-of", type=path, metavar="FILE",
                         help="in place of a space: another GPU's record, the 16 (--limit) fastest of each length that "
                         "all were timed at; minutes in place of a quarter of an hour")  # fmt: skip
    parser.add_argument("--limit", type=size, default=0, metavar="N", help="of each type and head dim at most N")
    parser.add_argument("--tokens", type=size, default=16384, help="B times N, the same for all lengths")
    parser.add_argument("--heads", type=size, default=16)
    parser.add_argument("--lengths", type=numbers, default=bench.LENGTHS, metavar="N,N,...", help="of the finals")
    parser.add_argument("--short-list", type=numbers, default=(1024, 4096), metavar="N,N",
                        help="lengths at which all are timed first")  # fmt: skip
    parser.add_argument("--stages", type=stage_numbers, default=tuple(range(4, 12)), metavar="NN,NN",
                        help="that run beside their flags")  # fmt: skip
    parser.add_argument("--best", type=size, default=6, metavar="N",
                        help="of each length of the short list that go on to the finals")  # fmt: skip
    parser.add_argument("--store", type=path, metavar="FILE", help="what is remembered; default: build/tuning.sqlite")
    parser.add_argument("--out", type=path, metavar="FILE", help="the record; default: docs/results/GPU-tuning.json")
    parser.add_argument("--again", action="store_true", help="try again what failed before")
    text = "record what ptxas gives a sample of configurations; needs no GPU, times nothing"
    parser.add_argument("--registers", action="store_true", help=text)
    text = "the table of blocks anew, from the record GPU-decode-shares.json of stage lean or paged_kv"
    parser.add_argument("--decode", type=path, metavar="FILE", help=text)


def command_machine_code(options) -> int:
    from flashladder.commands import gpu_report
    from flashladder.measuring import machine_code

    if options.mistakes:
        detections.record_notes(gpu_report.chosen(options.mistakes), options.most)
    elif options.judged:
        detections.record_verdicts(gpu_report.chosen(options.judged), options.most)
    else:
        machine_code.write_record(options.arch)
    say(f"Recorded: {os.path.relpath(machine_code.record_file(options.arch), ROOT)}")
    return 0


Adder = Callable[[str, Callable, str], argparse.ArgumentParser]  # a command's name, what it does, its help


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flashladder", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, function: Callable, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        return sub

    for of in (_stages, _answers, _measuring, _classes, _records, _tests, _texts):
        of(add)
    return parser


def _stages(add: Adder) -> None:
    add("stages", command_stages, "list the stages and where they run")
    add("device", command_device, "say which device is used")
    add("demo", later("commands.demo.run"), "build, run and verify the forward ladder, plot the throughput")
    sub = add("build", command_build, "build everything, or the targets named")
    sub.add_argument("target", nargs="*")
    sub = add("run", command_run, "run one stage on random inputs and verify it")
    sub.add_argument("stage")
    add_problem_options(sub, 256)
    sub.set_defaults(dtype="")
    sub.add_argument("--seed", type=seed, default=0)
    text = "one stage: build, run, test, bench, profile, diff, break, order, timeline"
    sub = add("stage", later("commands.stage.command", "stage", "verbs", "rest"), text)
    sub.add_argument("stage")
    sub.add_argument("verbs", nargs="*")


def _answers(add: Adder) -> None:
    """What a reader writes, and how it is judged."""

    def add_verbs(name: str, text: str) -> None:
        sub = add(name, later(f"commands.{name}.command", "stage", "verbs", "name"), text)
        sub.add_argument("stage")
        sub.add_argument("verbs", nargs="*")
        sub.add_argument("--name", default="", help=f"of one {name}; default: all that are begun")

    add_verbs("exercise", "a stage's exercises: list, start, check, hint, watch")
    add("exercises", later("commands.exercise.ladder"), "how far you are with the exercises of all stages")
    text = "a blank page for a whole kernel of a stage: signature and launch, nothing else"
    sub = add("new", later("commands.blank.new", "stage", "kernel", "give"), text)
    sub.add_argument("stage")
    text = "to write; default: work/NN/kernel.cu; never over a file"
    sub.add_argument("--kernel", default="", metavar="FILE", help=text)
    sub.add_argument("--give", default="", metavar="PART", help="the parts up to this one stand on the page")
    text = "judge a whole kernel that you wrote, part by part"
    sub = add("check", later("commands.blank.check", "stage", "kernel", "part"), text)
    sub.add_argument("stage")
    sub.add_argument("--kernel", default="", metavar="FILE", help="default: work/NN/kernel.cu")
    sub.add_argument("--part", default="", metavar="PART", help="this one alone")
    sub = add("export-task", later("commands.classroom.export_task", "stage", "to"),
              "a stage's exercises as a task of a service that ranks kernels, in KernelBot's form")  # fmt: skip
    sub.add_argument("stage")
    sub.add_argument("--to", type=path, required=True, metavar="FOLDER", help="that is not there yet, or empty")
    add_verbs("puzzle", "a stage's puzzles, ten lines each: list, start, check, hint, solution")
    add("next", later("commands.following.run"), "what you have done, what comes next, and how long it takes")


def _measuring(add: Adder) -> None:
    add_bench_options(add("bench", command_bench, "throughput of all stages and the peers; on the simulator, counters"))
    sub = add("bench-sim", later("simulator.speed.run", "stage"), "how fast the simulator is")
    sub.add_argument("--stage", default="2")
    sub = add("profile", command_profile, "counters by source line, beside the stage before")
    sub.add_argument("stage")
    add_problem_options(sub, 256)
    sub.set_defaults(dtype="")
    sub = add("timeline", command_timeline, "when warps compute, wait and ask, by a model: table, picture, Perfetto")
    sub.add_argument("stage")
    add_problem_options(sub, 512)
    sub.set_defaults(dtype="")
    sub.add_argument("--blocks", type=int, default=0, help="on the multiprocessor; default: as many as are resident")
    sub.add_argument("--from", dest="start", type=float, default=0, metavar="CLOCK", help="where the picture begins")
    sub.add_argument("--to", dest="end", type=float, default=0, metavar="CLOCK", help="where it ends")
    sub.add_argument("--out", type=path, metavar="FILE", help="the picture; default: build/results/timeline-NN.png")
    sub.add_argument("--perfetto", type=path, metavar="FILE", help="default: build/results/timeline-NN.json")


def _classes(add: Adder) -> None:
    """What an instructor does."""
    sub = add("assignment", command_assignment, "list the assignments, or write the students' folder of one")
    sub.add_argument("name", nargs="?", help="its name, or a file of the same form")
    sub.add_argument("--out", type=path, help="the folder to write; default: work/assignments/NAME")
    text = "write what a service is given to grade with this project"
    sub = add("autograder", later("commands.classroom.write_autograder", "assignment", "service", "out"), text)
    sub.add_argument("assignment", nargs="?", default="", help="its name, or a file of the same form")
    sub.add_argument("service", nargs="?", default="", help="gradescope or classroom50")
    sub.add_argument("--out", type=path, help="the folder to write to; default: work/autograders/ASSIGNMENT")
    sub = add("grade", command_grade, "grade a folder of submissions")
    sub.add_argument("name", nargs="?", metavar="assignment", help="its name, or a file of the same form")
    text = "a folder with a folder or an archive for each student"
    sub.add_argument("folder", nargs="?", type=path, metavar="submissions", help=text)
    sub.add_argument("--out", type=path, help="where reports and results go; default: build/results/classes/NAME")
    sub.add_argument("--scheduler", default="", help="local, slurm, pbs or tls://host:8786; default: processes")
    sub.add_argument("--jobs", type=size, help="how many at a time (of slurm and pbs: jobs); default: the processors")
    text = "auto: the best level that there is; none must be asked for"
    sub.add_argument("--isolation", dest="isolated", default="auto", help=text)
    sub.add_argument("--job-script", action="store_true", help="show what --scheduler slurm or pbs would submit")
    sub.add_argument("--certificates", type=path, metavar="FOLDER", help="of the class, for --scheduler")
    sub.add_argument("--only", default="", metavar="NAME", help="grade this submission anew, and no other one")
    sub.add_argument("--times", default="", metavar="FILE", help="CSV with id and handed_in, or the word files")
    sub.add_argument("--roster", type=path, metavar="FILE", help="Canvas' gradebook or Moodle's list: points for it")
    sub.add_argument("--pseudonyms", action="store_true", help="no names in the reports; pseudonyms.csv has them")
    text = "similar.md: which answers are alike (no verdict)"
    sub.add_argument("--similarity", dest="similar", action="store_true", help=text)
    text = "make the certificates by which a class's cluster is reached"
    sub = add("certificates", later("commands.classroom.make_certificates", "folder"), text)
    sub.add_argument("folder", nargs="?", type=path, help="default: work/certificates")


def _records(add: Adder) -> None:
    """What is recorded, and drawn."""
    sub = add("ablations", command_ablations, "kernels with one idea changed at a time, timed on a GPU")
    sub.add_argument("--stages", type=stage_numbers, default=(), metavar="NN,NN", help="default: all that have any")
    text = "time the configurations of autotune, or of shapes, and choose by shape; resumes"
    add_tune_options(add("tune", command_tune, text))
    sub = add("machine-code", command_machine_code, "record the machine code of the loops over K and V; needs no GPU")
    sub.add_argument("--arch", default="sm_90")
    text = "what nvcc and ptxas say of the planted mistakes of these stages instead, e.g. 15-25"
    sub.add_argument("--mistakes", default="", metavar="STAGES", help=text)
    text = "what warpsim says of those that no lesson shows instead"
    sub.add_argument("--judged", default="", metavar="STAGES", help=text)
    sub.add_argument("--most", type=int, default=0, metavar="N", help="and of N mistakes at most")
    add("diff", later("ladder.diff.show", "stage"), "what a stage adds to the one before").add_argument("stage")
    add("plot", later("commands.throughput.plot_latest"), "draw the newest results beside the recorded ones")
    add("results", command_results, "regenerate tables and plots in README and docs")


def _tests(add: Adder) -> None:
    """What keeps the project right."""
    sub = add("test", later("commands.testing.run", "which", "rest"), "run the tests; words after -- go to pytest")
    sub.set_defaults(which="quick")
    which = sub.add_mutually_exclusive_group()
    which.add_argument("--all", dest="which", action="store_const", const="all", help="the long ones too")
    which.add_argument("--long", dest="which", action="store_const", const="long", help="the long ones alone")
    simulator = "the simulator's long ones alone, whether it has changed or not"
    which.add_argument("--simulator", dest="which", action="store_const", const="simulator", help=simulator)
    text = "damaged PTX, damaged fat binaries and random kernels against the simulator"
    sub = add("fuzz", later("commands.fuzz.run", "minutes", "seed", "target", "count"), text)
    sub.add_argument("--minutes", type=float, default=3)
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--target", choices=("ptx", "fatbin", "kernels", "maps"), help="default: each in turn")
    sub.add_argument("--count", type=int, help="executions of each target, the same ones each time; default: no limit")
    text = "plant mistakes in the stages and see whether their tests notice"
    sub = add("mutants", later("commands.mutants.run", "names", "sample"), text)
    sub.add_argument("names", nargs="*", help="e.g. 05, or 05-planned_once; default: all")
    sub.add_argument("--sample", type=int, default=0, metavar="N", help="N of them, by FLASHLADDER_MUTANTS_SEED")
    text = "tests, sanitizer, benchmarks and ncu on a GPU, in one go"
    sub = add("gpu-report", later("commands.gpu_report.run", "parts", "most", "mistakes", "beside", "seconds"), text)
    sub.add_argument("--parts", type=words, default=(), metavar="PART,PART")
    text = "of the part faults with STAGES: at most N mistakes, of each stage one before a second"
    sub.add_argument("--most", type=int, default=0, metavar="N", help=text)
    text = "and these mistakes alone, also those that are recorded"
    sub.add_argument("--mistakes", type=words, default=(), metavar="NAME,NAME", help=text)
    text = "and N processes on the GPUs at once (default: %(default)s)"
    sub.add_argument("--beside", type=int, default=1, metavar="N", help=text)
    text = "and after so many seconds nothing more, the build not counted (default: %(default)s)"
    sub.add_argument("--seconds", type=float, default=detections.SECONDS, metavar="S", help=text)
    text = "say what is wrong with a report that gpu-report wrote"
    sub = add("check-report", later("commands.check_report.run", "file", "take"), text)
    sub.add_argument("file", nargs="?", default="", help="the archive, its folder, or one JSON file")
    sub.add_argument("--take", action="store_true", help="have its records lie in docs/results")
    text = "say what keeps a release back; else write, commit and tag it (no push)"
    sub = add("release", later("commands.release.run", "version"), text)
    sub.add_argument("version", nargs="?", default="", help="e.g. 0.2.0")


def _texts(add: Adder) -> None:
    """Notebooks, the site, and tools."""
    text = "open the notebooks, or run, save and check them; words after -- go to Jupyter"
    sub = add("notebooks", command_notebooks, text)
    sub.add_argument("names", nargs="*", help="e.g. 05 start_here; default: all")
    sub.add_argument("--run", action="store_true", help="execute them from top to bottom")
    sub.add_argument("--save", action="store_true", help="execute them and write the outputs into the files")
    sub.add_argument("--check", action="store_true", help="say what is not in canonical form")
    sub.add_argument("--format", action="store_true", help="bring them into canonical form")
    sub.add_argument("--exercises", action="store_true", help="write the exercises and puzzles in them anew")
    sub.add_argument("--lengths", action="store_true", help="say how long each lesson is: words, cells, minutes")
    text = "compile the simulator and the kernels for the site's page that runs them"
    add("browser", later("commands.browser.run"), text)
    text = "build the site from the pages and notebooks; words after -- go to sphinx-build"
    add("docs", later("commands.docs.run", "rest"), text)
    text = "serve the built site here, with a compiler for the kernels of its page"
    sub = add("page", later("commands.page.run", "port"), text)
    sub.add_argument("--port", type=int, default=8421, help="0: any that is free")
    sub = add("format", later("commands.format.run", "check"), "format Python, C++ and CUDA")
    sub.add_argument("--check", action="store_true", help="only say what would change")
    add("torch", later("commands.torch_check.run"), "try flashladder.torch on a GPU: gradients, a layer that learns")
    add("sim", later("simulator.sim.run", "rest"), "run a CUDA program on the simulator: sim -- ./program arguments")


# What is no fault of this program, and what to do.
WAY_OUT = {
    errno.ENOSPC: "Make room and run this again.",
    errno.EDQUOT: "Make room and run this again.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f) and run this again.",
    errno.EROFS: "Clone the project to a folder that can be written, or name another place.",
    errno.ENOTDIR: "Name a folder, or another place.",
    errno.EISDIR: "Name a file.",
    errno.EEXIST: "It is no folder: name another place.",
    errno.EACCES: "Give yourself the right to it, or name another place.",
}


def _reader_is_gone() -> bool:
    """Whether what this prints goes nowhere, as after `| head`: the rest of it is thrown away then."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    gone = any(event & select.POLLERR for _, event in poll.poll(0))
    if gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone


def main(arguments: list[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # What follows the first -- belongs to the program or to pytest.
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = make_parser().parse_args(arguments[:cut])
    options.rest = arguments[cut + 1 :]
    try:
        device.requested()  # a bad FLASHLADDER_DEVICE is told before anything is built
        return options.function(options)
    except FlashLadderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in WAY_OUT:
            raise
        where = f"{error.filename2 or error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror}. {WAY_OUT[error.errno]}", file=sys.stderr)
        return 1
    except MemoryError:
        print(
            "error: This machine has too little memory for that. Ask for fewer batches, heads or rows.", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130

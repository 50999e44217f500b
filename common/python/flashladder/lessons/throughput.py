"""Throughput of the stages so far: a short run on the GPU that is here, beside what is recorded.

python -m flashladder.lessons.throughput JOB.json     the run itself, in a process of its own
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from flashladder.building import build
from flashladder.core import device
from flashladder.core.environment import for_python
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import results_directory
from flashladder.ladder import stages
from flashladder.measuring import bench, recorded

LENGTHS = (1024, 4096)
SECONDS = 20.0  # after which no further length is begun


def stages_until(number: int) -> list[stages.Stage]:
    return [stage for stage in stages.all_stages() if stage.number <= number]


def only(results: dict, number: int) -> dict:
    """The results without stages beyond the one with that number; peers stay."""
    names = {stage.name for stage in stages_until(number)}
    kept = {
        key: [row for row in results[key] if row["kind"] != "stage" or row["name"] in names]
        for key in ("measurements", "together")
        if key in results
    }
    return results | kept


def recorded_until(number: int) -> list[tuple[dict, bool]]:
    """What ships and has the stage, as plot.throughput takes it."""
    names = [stage.name for stage in stages_until(number)]
    having = [one for one in recorded.shipped() if not names or recorded.pick(one, name=names[-1])]
    return [(only(one, number), False) for one in having]


def measure(number: int, d: int, dtype: str, causal: bool = False) -> dict | None:
    """A short run of the stages so far and the peers, None without a GPU; also written below build/results/lessons.

    In a process of its own: a process has one CUDA runtime for good.
    """
    fit = [stage for stage in stages_until(number) if device.choose(stage.min_compute).kind == "gpu"]
    if not fit:
        return None
    build.build(sorted({target for stage in fit for target in stage.targets}))
    folder = results_directory() / "lessons"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"stage-{number:02d}-{dtype}-d{d}{'-causal' if causal else ''}.json"
    job = {"stages": [stage.number for stage in fit], "lengths": LENGTHS, "head_dims": [d], "dtypes": [dtype]}
    with tempfile.TemporaryDirectory(prefix="flashladder-lesson-") as name:
        job_file = Path(name) / "job.json"
        job_file.write_text(json.dumps(job | {"causal": [causal], "file": str(file)}))
        command = [sys.executable, "-m", "flashladder.lessons.throughput", str(job_file)]
        done = subprocess.run(command, capture_output=True, text=True, env=for_python(), timeout=300)
    if done.returncode:
        raise FlashLadderError(f"The short benchmark failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
    return recorded.load(file)


def main() -> int:
    job = json.loads(Path(sys.argv[1]).read_text())
    settings = bench.Settings(
        stages=tuple(job["stages"]),
        lengths=tuple(job["lengths"]),
        head_dims=tuple(job["head_dims"]),
        dtypes=tuple(job["dtypes"]),
        causal=tuple(job["causal"]),
        seconds=0.05,
        deadline=SECONDS,
    )
    where = device.choose()
    try:
        bench.check_build(where)
        results = bench.Bench(settings, where).run()
    except (FlashLadderError, bench.CudaError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    Path(job["file"]).write_text(recorded.to_text(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

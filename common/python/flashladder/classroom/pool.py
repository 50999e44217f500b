"""Where submissions are graded: processes of this machine, or a cluster of Dask's. Both keep few tasks in flight, so
that memory does not grow with the class, and try again where a process or a worker is lost.

And the class's own certificates. Who reaches a scheduler or a worker of Dask's has it run any code, as the user who
started it: so they speak TLS alone, and with nobody who does not show the class's certificate. One certificate, signed
by itself, is the authority and everybody's proof; its key is what makes a machine one of the class's. Both are files
that this user alone can read.
"""

import itertools
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from flashladder.building import build
from flashladder.classroom import task as tasks
from flashladder.classroom.task import Task, TaskFailed
from flashladder.core.errors import FlashLadderError
from flashladder.core.paths import write_new

CERTIFICATE, KEY = "class.pem", "class.key"
DAYS = 400  # a course's year


def make_certificates(folder: Path) -> Path:
    """Writes both files into a folder that does not have them yet."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise FlashLadderError("Certificates need the extra: `pip install 'flashladder[classroom]'`.") from error
    for name in (CERTIFICATE, KEY):
        if os.path.lexists(folder / name):
            raise FlashLadderError(f"{folder / name} exists: the class has its certificates; remove both for new ones.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "FlashLadder class")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    format_of_keys = serialization.PrivateFormat.PKCS8
    write_new(folder / KEY, key.private_bytes(serialization.Encoding.PEM, format_of_keys, plain), 0o600)
    try:
        write_new(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), 0o600)
    except OSError:
        (folder / KEY).unlink()  # one of them alone is of no use, and would have to be removed by hand
        raise
    return folder


def security(folder: Path):
    """distributed's Security with the class's certificates, for which nothing is spoken without."""
    import distributed

    certificate, key = folder / CERTIFICATE, folder / KEY
    for file in (certificate, key):
        if not file.is_file():
            raise FlashLadderError(
                f"{file} does not exist. A cluster is reached by the class's certificates alone: `make certificates` "
                "makes them; put the folder where every worker reads it, and name it by --certificates."
            )
    if key.stat().st_mode & 0o077:
        raise FlashLadderError(f"{key} can be read by others, who could run code as you then: `chmod 600 {key}`.")
    files = {"tls_ca_file": str(certificate)}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_cert": str(certificate), f"tls_{role}_key": str(key)}
    return distributed.Security(require_encryption=True, **files)


def options_of_dask(folder: Path) -> str:
    """For `dask scheduler` and `dask worker`."""
    certificate, key = (shlex.quote(str(folder / name)) for name in (CERTIFICATE, KEY))
    return f"--tls-ca-file {certificate} --tls-cert {certificate} --tls-key {key}"


ATTEMPTS = 3
CLUSTERS = {"slurm": "SLURMCluster", "pbs": "PBSCluster"}  # of dask_jobqueue


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a result, or after ATTEMPTS none. retried: why it was tried again, a sentence each time."""

    task: Task
    result: dict | None
    retried: tuple[str, ...] = ()
    failed: str = ""


Pool = Callable[[Iterable[Task]], Iterator[Outcome]]


def attempt(task: Task) -> Outcome:
    """Grades, up to ATTEMPTS times where the process ends without a result."""
    said: list[str] = []
    while True:
        try:
            return Outcome(task, tasks.run(task), tuple(said))
        except TaskFailed as error:
            said.append(str(error))
            if len(said) == ATTEMPTS or not error.again:
                return Outcome(task, None, tuple(said[:-1]), said[-1])


def local(jobs: int | None = None) -> Pool:
    """Processes of this machine, `jobs` at a time (by default as FLASHLADDER_JOBS and the processors say)."""
    jobs = jobs or build.jobs()

    def pool(todo: Iterable[Task]) -> Iterator[Outcome]:
        todo = iter(todo)
        tasks.running.resume()
        with futures.ThreadPoolExecutor(jobs) as threads:  # each waits for a process
            running = {threads.submit(attempt, task) for task in itertools.islice(todo, jobs)}
            try:
                while running:
                    done, running = futures.wait(running, return_when=futures.FIRST_COMPLETED)
                    running |= {threads.submit(attempt, task) for task in itertools.islice(todo, len(done))}
                    yield from (one.result() for one in done)
            except BaseException:  # a signal, or whoever asks for outcomes has stopped asking
                tasks.running.stop()
                raise
            finally:
                threads.shutdown(wait=True, cancel_futures=True)

    return pool


def _dask():
    try:
        import distributed
    except ImportError as error:
        raise FlashLadderError(
            "--scheduler needs dask.distributed: `pip install 'flashladder[classroom]'`, or leave --scheduler away for "
            "processes of this machine."
        ) from error
    return distributed


def over(client) -> Pool:
    """The workers of a Dask client. A task whose worker dies is given to another one by the scheduler."""
    distributed = _dask()

    def pool(todo: Iterable[Task]) -> Iterator[Outcome]:
        todo, by_key = iter(todo), {}
        done = distributed.as_completed(loop=client.loop)

        def submit() -> None:
            ahead = 2 * max(1, sum(client.nthreads().values()))
            for task in itertools.islice(todo, max(0, ahead - len(by_key))):
                future = client.submit(attempt, task, key=f"grade-{task.key}", pure=False)
                by_key[future.key] = task
                done.add(future)

        try:
            submit()
            for future in done:
                task = by_key.pop(future.key)
                lost = client.run_on_scheduler(_workers_lost, key=future.key)
                words = tuple("the worker that graded it was lost" for _ in range(lost))
                if future.status == "finished":
                    outcome = future.result()
                    yield Outcome(task, outcome.result, (*words, *outcome.retried), outcome.failed)
                else:
                    yield Outcome(task, None, words[:-1], str(future.exception()).splitlines()[0][:300])
                future.release()
                submit()
        except BaseException:  # a signal, or whoever asks for outcomes has stopped asking: nothing is to run on
            keys = [task.key for task in by_key.values()]
            client.cancel([distributed.Future(key, client) for key in by_key], force=True)
            client.run(tasks.running_stop, keys)
            raise

    return pool


def _workers_lost(dask_scheduler, key: str) -> int:
    known = dask_scheduler.tasks.get(key)
    return known.suspicious if known else 0


@contextmanager
def connect(scheduler: str, jobs: int | None = None, folder: Path | None = None) -> Iterator[Pool]:
    """The pool that --scheduler names: "" (processes), "local" (Dask on this machine), an address such as
    tls://host:8786, "slurm" or "pbs" (as Dask's configuration says, `jobs` jobs). folder: with the class's
    certificates; nothing is spoken with Dask without them."""
    if not scheduler:
        yield local(jobs)
        return
    distributed = _dask()
    if "://" in scheduler and not scheduler.startswith("tls://"):
        raise FlashLadderError(
            f"--scheduler {scheduler}: tls:// is the only way. Who reaches an open port of Dask's has it run any code, "
            "as you; `make certificates` makes the class's certificates and says how to start a scheduler with them."
        )
    if "://" not in scheduler and scheduler not in ("local", *CLUSTERS):
        cluster(scheduler)  # says what there is to choose
    with _certificates(scheduler, folder) as security:
        if "://" in scheduler:
            try:
                client = distributed.Client(scheduler, timeout="15s", set_as_default=False, security=security)
            except (OSError, ValueError) as error:
                raise FlashLadderError(
                    f"No Dask scheduler with the class's certificates answers at {scheduler}: start `dask scheduler "
                    "--protocol tls` there with them (`make certificates` shows the line)."
                ) from error
            with client:
                yield over(client)
            return
        made = _local_cluster(jobs, security) if scheduler == "local" else cluster(scheduler, jobs, security)
        with made as found, distributed.Client(found, set_as_default=False, security=security) as client:
            yield over(client)


@contextmanager
def _certificates(scheduler: str, folder: Path | None):
    """distributed's Security. Where all workers are processes of this machine the certificates are made for the day."""
    if folder is None and scheduler == "local":
        with tempfile.TemporaryDirectory(prefix="flashladder-certificates-") as made:
            yield security(make_certificates(Path(made)))
    elif folder is None:
        raise FlashLadderError(
            f"--scheduler {scheduler} needs --certificates: a folder that `make certificates` has made, which every "
            "worker can read."
        )
    else:
        yield security(folder)


def _local_cluster(jobs: int | None, security):
    workers = jobs or build.jobs()
    options = {"protocol": "tls://", "security": security, "host": "127.0.0.1", "dashboard_address": None}
    return _dask().LocalCluster(n_workers=workers, threads_per_worker=1, **options)


def cluster(kind: str, jobs: int | None = None, security=None):
    """A cluster of dask_jobqueue with `jobs` jobs, of what ~/.config/dask/jobqueue.yaml says of it. Its job_script() is
    what each job is submitted as."""
    if kind not in CLUSTERS:
        raise FlashLadderError(
            f"--scheduler {kind}: choose local, {', '.join(CLUSTERS)}, or an address tls://host:8786."
        )
    try:
        import dask_jobqueue
    except ImportError as error:
        raise FlashLadderError(
            f"--scheduler {kind} needs dask-jobqueue: `pip install 'flashladder[classroom]'`."
        ) from error
    options = {"security": security, "protocol": "tls://"} if security else {}
    try:
        found = getattr(dask_jobqueue, CLUSTERS[kind])(**options)
    except (ValueError, TypeError) as error:
        raise FlashLadderError(
            f"Dask's configuration says too little of {kind}: {error}\n"
            f"Write cores, memory and walltime into ~/.config/dask/jobqueue.yaml (docs/instructors.md shows one)."
        ) from error
    if jobs:
        found.scale(jobs=jobs)
    return found

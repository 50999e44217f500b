"""cuDNN by its Python package nvidia-cudnn-frontend, for what PyTorch does not offer of it; if the package is there."""

from contextlib import contextmanager
from functools import cache

from flashladder.core.problem import Problem
from flashladder.measuring import gpu_memory

PACKAGE = "nvidia-cudnn-frontend"


class Unavailable(RuntimeError):
    """Why there is no such peer here: the package is missing, or cuDNN has no kernel for the problem."""


def package():
    try:
        import cudnn
    except ModuleNotFoundError as error:
        if error.name == "cudnn":
            raise Unavailable(f"package {PACKAGE} not there") from error
        raise Unavailable(f"package {PACKAGE}: {error}") from error
    except Exception as error:  # it loads libcudnn.so.9 while it is imported
        raise Unavailable(_words(error)) from error
    return cudnn


@cache
def handle():
    return package().create_handle()  # of the default stream


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"package {PACKAGE}: {type(error).__name__}: {lines[0] if lines else 'no message'}"


@contextmanager
def unavailable():
    """Whatever the package raises as Unavailable: its exceptions have no common class, and a benchmark goes on without
    this peer."""
    try:
        yield
    except Exception as error:
        raise Unavailable(_words(error)) from error


def version() -> dict:
    """What a record says of the package; nothing where it is missing."""
    try:
        return {"cudnn_frontend": str(package().__version__)}
    except (Unavailable, AttributeError):
        return {}


def graph(io_type):
    """An empty one; the intermediate numbers are floats."""
    cudnn = package()
    floats = cudnn.data_type.FLOAT
    return cudnn.pygraph(io_data_type=io_type, intermediate_data_type=floats, compute_data_type=floats, handle=handle())


def operand(made, name: str, tensor, kind):
    return made.tensor(name=name, dim=list(tensor.shape), stride=list(tensor.stride()), data_type=kind)


def write_to(result, tensor, kind) -> None:
    """Has an output of the graph lie as PyTorch's tensor does."""
    result.set_output(True).set_dim(list(tensor.shape)).set_stride(list(tensor.stride())).set_data_type(kind)


def alignment(problem: Problem):
    """Of a causal mask: the last query sees the last key."""
    return getattr(package().diagonal_alignment, "TOP_LEFT" if problem.Nq == problem.Nkv else "BOTTOM_RIGHT")


def launcher(made, buffers: dict):
    """Builds the graph; a function that queues it on the default stream with these tensors."""
    modes = package().heur_mode
    made.validate()
    made.build_operation_graph()
    made.create_execution_plans([modes.A, modes.FALLBACK])
    made.check_support()
    made.build_plans()
    torch = gpu_memory.torch
    workspace = torch.empty(max(1, made.get_workspace_size()), dtype=torch.uint8, device="cuda")

    def launch():
        with unavailable():
            made.execute(buffers, workspace, handle=handle())

    return launch

"""Runs networks on a device and compares all that passes between programs with a judge."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx.numpy_helper import to_array

from vitral.bench.yardstick import numpy_workload
from vitral.compiler.pipeline import compile
from vitral.errors import VitralError
from vitral.runtime.session import Session
from vitral.zoo.count import count_macs
from vitral.zoo.golden import numpy_tensors
from vitral.zoo.subjects import Subject

__all__ = ["Judge", "NetworkRun", "is_collapsed", "load_judge", "run_network"]

Array = npt.NDArray[Any]
Judge = Callable[[Any, Mapping[str, Array]], Mapping[str, Array]]
"""Gives tensors of a model by name, for inputs by name; uint8 ones may come as value - 128."""

_COLLAPSED = 0.5
_FEWEST = 16


@dataclass(frozen=True, kw_only=True)
class NetworkRun:
    """What a run of a network gave.

    `macs` are the float graph's; `accelerator_share` is the part of them that programs do.
    `tensors` of `bytes` were compared: all between steps that the judge knows, and the outputs.
    `collapsed` names those of which more than half have one value, the ends and 0 left out, so
    that equal bytes would mean little. Times are seconds: of CPU for compiling and for
    `numpy_workload`, a fixed one in the same process; of the clock for the run.
    """

    name: str
    source: str
    device: str
    judge: str
    macs: int
    accelerator_share: float
    tensors: int
    bytes: int
    differing_bytes: int
    collapsed: tuple[str, ...]
    programs: int
    notices: tuple[str, ...]
    compile_s: float
    numpy_workload_s: float
    run_s: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @property
    def passed(self) -> bool:
        """All bytes equal, and equality means something."""
        return not self.differing_bytes and not self.collapsed and self.tensors > 0


def load_judge(name: str) -> Judge:
    """`numpy`, or a function written MODULE:FUNCTION.

    Raises
    ------
    VitralError
        When there is no such function.
    """
    if name == "numpy":
        return numpy_tensors
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise VitralError(f"judge {name!r}: needs numpy or MODULE:FUNCTION, {error}") from None


def run_network(
    subject: Subject, device: str = "fsim", *, judge: str = "numpy", seed: int = 0
) -> NetworkRun:
    """Build, compile and run one network, and compare it byte by byte.

    Raises
    ------
    VitralError
        When the network needs a package that is missing, or is refused.
    """
    decide = load_judge(judge)
    model = subject.build(seed)
    start = time.process_time()
    module = compile(model)
    compile_s = time.process_time() - start
    feeds = subject.inputs(model, seed + 1)
    with Session(module, device) as session:
        start = time.perf_counter()
        results = session.run(None, feeds)
        run_s = time.perf_counter() - start
        got = {name: np.array(value) for name, value in session.tensors().items()}
    got |= {info.name: y for info, y in zip(module.outputs, results, strict=True)}
    wanted = _held(_judged(decide, judge, model, feeds), got)
    missing = [info.name for info in module.outputs if info.name not in wanted]
    if missing:
        raise VitralError(f"judge {judge!r} does not give output {missing[0]!r}")
    compared = {name: array for name, array in got.items() if name in wanted and name not in feeds}
    macs, zeros = count_macs(model), _zeros(model)
    return NetworkRun(
        name=subject.name,
        source=subject.source,
        device=device,
        judge=judge,
        macs=macs,
        accelerator_share=sum(x.macs for s in module.segments for x in s.layers) / max(macs, 1),
        tensors=len(compared),
        bytes=sum(array.nbytes for array in compared.values()),
        differing_bytes=sum(_differing(wanted[name], y) for name, y in compared.items()),
        collapsed=tuple(n for n, y in compared.items() if is_collapsed(y, zeros.get(n))),
        programs=len(module.segments),
        notices=tuple(module.notices),
        compile_s=compile_s,
        numpy_workload_s=_workload_s(),
        run_s=run_s,
    )


@cache
def _workload_s() -> float:
    """`numpy_workload`, once per process."""
    return numpy_workload()


def _judged(
    decide: Judge, name: str, model: Any, feeds: Mapping[str, Array]
) -> Mapping[str, Array]:
    try:
        return decide(model, feeds)
    except VitralError:
        raise
    except Exception as error:  # a judge's own errors are not ours to know
        text = " ".join(str(error).split())
        raise VitralError(f"judge {name!r}: {type(error).__name__}: {text}") from error


def _held(wanted: Mapping[str, Array], got: Mapping[str, Array]) -> dict[str, Array]:
    """The judge's tensors in the types that a session holds them in."""
    held = dict(wanted)
    for name, array in wanted.items():
        if array.dtype == np.uint8 and name in got and got[name].dtype == np.int8:
            held[name] = (array ^ 0x80).view(np.int8)
    return held


def _differing(wanted: Array, got: Array) -> int:
    """Bytes that differ; all when type or shape do."""
    if (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
        return got.nbytes
    left, right = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (wanted, got))
    return int(np.count_nonzero(left != right))


def _zeros(model: Any) -> dict[str, int]:
    """Code of 0.0 of each tensor that a QuantizeLinear makes, as a session holds it."""
    constants = {constant.name: constant for constant in model.graph.initializer}
    zeros: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and len(node.input) > 2:
            zero = to_array(constants[node.input[2]])
            if zero.size == 1:
                zeros[node.output[0]] = int(zero.reshape(())) - 128 * (zero.dtype == np.uint8)
    return zeros


def is_collapsed(array: Array, zero: int | None) -> bool:
    """Whether most elements have one value, where activations do not pile them up by design.

    Relu and HardSigmoid do so at the ends of a tensor's values, products with a closed gate at 0.
    """
    if array.size < _FEWEST:
        return False
    values, counts = np.unique(array, return_counts=True)
    piles = (values == values[0]) | (values == values[-1]) | (values == zero)
    free = counts[~piles]
    if not free.size:
        return values.size < 2
    return free.max() > _COLLAPSED * array.size

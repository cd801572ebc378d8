"""How fast the simulators are: both on the same program, in one run, in steady state."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from vitral.bench.layers import RESNET18
from vitral.bench.workload import Workload, make_workload
from vitral.bench.yardstick import numpy_workload
from vitral.errors import DeviceError
from vitral.runtime.session import Session
from vitral.targets import target_config

__all__ = ["SimSpeed", "bench_sim"]

LAYER = "c2"
TSIM_RUNS = 15
FSIM_RUNS = 45
STARTS = 3
_FIRST_RUN = """
import sys, time
from vitral.runtime.session import Session
with Session(sys.argv[1], "fsim"):
    print(time.process_time())
"""


@dataclass(frozen=True, kw_only=True)
class SimSpeed:
    """Speed of both simulators on one layer; times are this process's.

    Speeds are of the median run; `best` of the fastest one, which is what the host does when
    nobody else uses its cores' other threads: on a shared host runs of one library differ by
    almost a factor of two.

    Parameters
    ----------
    cycles : int
        Core cycles of one run.
    tsim_cycles_per_s : float
        Of the RTL, per processor second.
    fsim_macs_per_s : float
        Multiply-accumulates of the layer per processor second, one thread.
    fsim_start_s : float
        Processor seconds of a second process until its simulator is ready, Python's own start
        included.
    numpy_workload_s : float
        Processor seconds of `numpy_workload`, to compare hosts and moments.
    """

    layer: str
    macs: int
    cycles: int
    match: bool
    tsim_cycles_per_s: float
    tsim_best_cycles_per_s: float
    tsim_runs_s: tuple[float, ...]
    fsim_macs_per_s: float
    fsim_best_macs_per_s: float
    fsim_runs_s: tuple[float, ...]
    fsim_start_s: float
    numpy_workload_s: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"benchmark": "sim", **asdict(self)}


def bench_sim() -> SimSpeed:
    """Measure both; every run's bytes are compared with numpy's, outside the measured time.

    The first run of each is left out: it faults in the memory of code and data.
    """
    workload = make_workload(LAYER, RESNET18[LAYER], target_config("sim"))
    tsim, cycles, tsim_match = _runs(workload, "tsim", TSIM_RUNS)
    fsim, _, fsim_match = _runs(workload, "fsim", FSIM_RUNS)
    if cycles is None:
        raise DeviceError("tsim counted no cycles")
    macs = workload.module.macs
    return SimSpeed(
        layer=LAYER,
        macs=macs,
        cycles=cycles,
        match=tsim_match and fsim_match,
        tsim_cycles_per_s=cycles / median(tsim),
        tsim_best_cycles_per_s=cycles / min(tsim),
        tsim_runs_s=tuple(tsim),
        fsim_macs_per_s=macs / median(fsim),
        fsim_best_macs_per_s=macs / min(fsim),
        fsim_runs_s=tuple(fsim),
        fsim_start_s=_start_again(workload),
        numpy_workload_s=numpy_workload(),
    )


def _runs(workload: Workload, device: str, count: int) -> tuple[list[float], int | None, bool]:
    """Processor seconds of each launch, cycles of one, and whether all gave the right bytes."""
    seconds, matches = [], []
    with Session(workload.module, device) as session:
        session.device.run = _timed(session.device.run, seconds)
        for _ in range(count + 1):
            (result,) = session.run(None, {"x": workload.source})
            matches.append(bool(np.array_equal(result, workload.expected)))
        cycles = session.outcomes()[0].cycles
    return seconds[1:], cycles, all(matches)


def _timed(run: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """`run`, noting how long each call takes; what the runtime does around it is not counted."""

    def measured(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        result = run(*arguments, **options)
        seconds.append(time.process_time() - start)
        return result

    return measured


def _start_again(workload: Workload) -> float:
    """Seconds until fsim is ready in a new process; its code is in the cache by now."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "layer.vitral"
        workload.module.save(path)
        command = [sys.executable, "-c", _FIRST_RUN, str(path)]
        return median(_seconds(command) for _ in range(STARTS))


def _seconds(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError(f"fsim did not start in a second process: {done.stderr.strip()[-200:]}")
    return float(done.stdout)

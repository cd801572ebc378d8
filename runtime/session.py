"""Runs a compiled network on a device, in onnxruntime's calling form."""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from os import PathLike
from types import TracebackType

import numpy as np
import numpy.typing as npt

from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.program import Outcome
from vitral.runtime.checks import check_inputs, check_output_names, check_timeout
from vitral.runtime.device import Device, execute, load_image, open_device
from vitral.runtime.module import ArenaTensor, CpuStep, Module, Segment, TensorInfo
from vitral.runtime.packing import pack_tensor, packed_bytes, unpack_tensor
from vitral.runtime.profile import (
    LayerProfile,
    copy_profile,
    cpu_profile,
    layer_marks,
    segment_profile,
)
from vitral.runtime.steps import run_step

__all__ = ["Session"]

Values = dict[str, npt.NDArray]

_IN_FLIGHT = 2
"""Images that `run_many` works on at a time: one on the device, one on the host."""


@dataclass
class _Run:
    """One run's tensors by name, and what it cost."""

    values: Values = field(default_factory=dict)
    profile: list[LayerProfile] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)


class Session:
    """A module on a device.

    The memory is allocated and the module's image written once. A run that fails leaves the
    session usable: the next one resets the core and writes the image again. Threads may share a
    session; their runs take turns, and `profile` and the like tell of the last one.

    Parameters
    ----------
    module : Module or path
        What to run.
    device : str or Device
        A name of `vitral.runtime.device.DEVICES`, ``tcp://host:port`` of a server, or an open
        device, which the session then owns.
    config : CoreConfig or None
        The core that the device has, when it is not the very one that the module was compiled
        for; it must mean the same (one digest).
    timeout : float or None
        Seconds on the host that one program may take, more than 0; no limit when None.
    options
        Passed to the device: `memory_model` for tsim, and so on.

    Raises
    ------
    ModuleError
        When the file cannot be used.
    DeviceError
        When the device cannot be opened, its core is not the module's, or the time-out is no time.
    """

    def __init__(
        self,
        module: Module | str | PathLike[str],
        device: str | Device = "fsim",
        *,
        config: CoreConfig | None = None,
        timeout: float | None = None,
        **options: object,
    ) -> None:
        self.module = module if isinstance(module, Module) else Module.load(module)
        self.timeout = check_timeout(timeout)
        self._lock = threading.RLock()
        self._device_lock = threading.Lock()
        self._last = _Run()
        self._loaded = False
        self._needs_reset = False
        self._closed = False
        if not isinstance(device, str) and options:
            raise DeviceError(f"an open device takes no options, got {', '.join(options)}")
        core = config or self.module.config
        _check_digest(core, self.module, device if isinstance(device, str) else device.name)
        self.device = open_device(device, core, **options) if isinstance(device, str) else device
        self._base = self._allocate()
        self._edges = {info.name for info in (*self.module.inputs, *self.module.outputs)}
        self._marks = {part.name: layer_marks(part, self.module) for part in self.module.segments}

    def _allocate(self) -> int:
        """The arena's address; a device that cannot have it is closed."""
        try:
            _check_digest(self.device.config, self.module, self.device.name)
            return self.device.allocate(self.module.arena_bytes) if self.module.segments else 0
        except DeviceError:
            self.device.close()
            raise

    def get_inputs(self) -> tuple[TensorInfo, ...]:
        return self.module.inputs

    def get_outputs(self) -> tuple[TensorInfo, ...]:
        return self.module.outputs

    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, npt.ArrayLike]
    ) -> list[npt.NDArray]:
        """The outputs asked for (None: all, in the model's order), for inputs by name.

        The arrays are the caller's own: they share memory with nothing.

        Raises
        ------
        DeviceError
            For wrong inputs or names, a program that does not end, or a closed session.
        ExecutionFault
            When a program stops with an error status.
        """
        with self._lock:
            wanted = self._wanted(output_names)
            self._last = _Run(dict(check_inputs(self.module.inputs, inputs)))
            return self._results(self._last, wanted)

    def run_many(
        self,
        output_names: Sequence[str] | None,
        batches: Iterable[Mapping[str, npt.ArrayLike]],
    ) -> list[list[npt.NDArray]]:
        """What `run` gives for each of the inputs, in their order.

        While the device works on one of them, the host works on the next one. All inputs are
        checked before the first one runs; after an error no other is started, and the first one's
        is raised. `profile` and the like tell of the last one.
        """
        with self._lock:
            wanted = self._wanted(output_names)
            runs = [_Run(dict(check_inputs(self.module.inputs, inputs))) for inputs in batches]
            if not runs:
                return []
            self._last = runs[-1]
            with ThreadPoolExecutor(_IN_FLIGHT, "vitral-run") as pool:
                futures = [pool.submit(self._results, run, wanted) for run in runs]
                try:
                    return [future.result() for future in futures]
                finally:
                    for future in futures:
                        future.cancel()

    def _wanted(self, output_names: Sequence[str] | None) -> Sequence[str]:
        if self._closed:
            raise DeviceError("the session is closed; open another one")
        return check_output_names(self.module.outputs, output_names)

    def _results(self, run: _Run, wanted: Sequence[str]) -> list[npt.NDArray]:
        for step in self.module.steps:
            if isinstance(step, CpuStep):
                self._run_cpu(step, run)
            else:
                self._run_segment(step, run)
        return [np.array(run.values[name], order="C") for name in wanted]

    def profile(self) -> tuple[LayerProfile, ...]:
        """Cost of the last run in the order of execution: layers, and between them the tensors
        that went from the host to the device or back."""
        return tuple(self._last.profile)

    def outcomes(self) -> tuple[Outcome, ...]:
        """How each program of the last run ended, with its cycles and counters."""
        return tuple(self._last.outcomes)

    def tensors(self) -> Mapping[str, npt.NDArray]:
        """All tensors between the steps of the last run, by name; uint8 ones as value - 128.

        Windows of an image for a first layer have the form they take in the arena.
        """
        return dict(self._last.values)

    def _run_cpu(self, step: CpuStep, run: _Run) -> None:
        start = time.perf_counter()
        run_step(step, run.values, self.module.arrays)
        run.profile.append(cpu_profile(step, time.perf_counter() - start))

    def _run_segment(self, segment: Segment, run: _Run) -> None:
        config = self.module.config
        inputs = []
        for tensor in segment.inputs:
            start = time.perf_counter()
            inputs.append((tensor.offset, pack_tensor(run.values[tensor.name], tensor, config)))
            self._note_copy(run, tensor, time.perf_counter() - start, to_device=True)
        with self._device_lock:
            self._make_ready()
            start = time.perf_counter()
            outcome, results = self._launch(segment, inputs)
            seconds = time.perf_counter() - start
            run.outcomes.append(outcome)
            run.profile += segment_profile(
                segment,
                outcome,
                self._marks[segment.name],
                self.device.config,
                self.device.name,
                seconds,
            )
            # The device may use the memory behind the results when it is written to again.
            for tensor, packed in zip(segment.outputs, results, strict=True):
                start = time.perf_counter()
                run.values[tensor.name] = unpack_tensor(packed, tensor, config)
                self._note_copy(run, tensor, time.perf_counter() - start, to_device=False)

    def _note_copy(
        self, run: _Run, tensor: ArenaTensor, seconds: float, *, to_device: bool
    ) -> None:
        """Of a value that a step on the host makes or reads; callers' own arrays are no copies."""
        if tensor.name in self._edges:
            return
        nbytes = packed_bytes(tensor, self.module.config)
        entry = copy_profile(
            tensor.name, self.device.name, nbytes=nbytes, seconds=seconds, to_device=to_device
        )
        run.profile.append(entry)

    def _launch(
        self, segment: Segment, inputs: list[tuple[int, npt.NDArray]]
    ) -> tuple[Outcome, list[npt.NDArray[np.uint8]]]:
        outputs = [
            (tensor.offset, packed_bytes(tensor, self.module.config)) for tensor in segment.outputs
        ]
        launch = segment.launch(self._base, self.module.arena_bytes)
        marks = self._marks[segment.name][:-1]  # the last layer ends with the program
        self._needs_reset = True
        try:
            outcome, results = execute(
                self.device, launch, inputs, outputs, timeout=self.timeout, marks=marks
            )
            outcome.raise_for_status()
        except DeviceError as error:
            error.args = (f"{segment.name}: {error.args[0]}", *error.args[1:])
            raise
        self._needs_reset = False
        return outcome, results

    def _make_ready(self) -> None:
        if self._needs_reset:
            self.device.reset()
            self._loaded, self._needs_reset = False, False
        if not self._loaded:
            load_image(self.device, self.module.image)
            self._loaded = True

    def close(self) -> None:
        """Close the device; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.device.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_digest(core: CoreConfig, module: Module, device: str) -> None:
    if core.digest != module.config.digest:
        raise DeviceError(
            f"the module is compiled for core {module.config.digest[:12]}, {device} has"
            f" {core.digest[:12]} ({_difference(core, module.config)}); compile it for that core"
        )


def _difference(core: CoreConfig, wanted: CoreConfig) -> str:
    mine, its = core.to_dict(), wanted.to_dict()
    return ", ".join(f"{k} {mine[k]}, not {its[k]}" for k in mine if mine[k] != its[k])

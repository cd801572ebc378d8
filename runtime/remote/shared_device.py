"""One device for several clients: each has an arena of its own, and all take turns."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitral.errors import DeviceError
from vitral.program import Launch, Outcome
from vitral.runtime.device import Device
from vitral.runtime.remote.images import Image
from vitral.runtime.remote.limits import Limits
from vitral.runtime.remote.scrub import SCRUB_BYTES, scrub_image, scrub_launch
from vitral.runtime.remote.space import Space
from vitral.runtime.remote.turns import Turns

__all__ = ["Arena", "SharedDevice"]

Alive = Callable[[], bool]
Ranges = Sequence[tuple[int, int]]

_PIECE = 1 << 20


@dataclass
class Arena:
    """A client's part of the device's memory.

    Parameters
    ----------
    offset, nbytes : int
        Where it lies in the region.
    image : Image or None
        What it holds before the first run.
    epoch : int
        Number of the reset of the device after which its contents were put there; -1 for none.
    written : bool
        Whether something was written since, apart from a run's own inputs.
    """

    offset: int
    nbytes: int
    image: Image | None = None
    epoch: int = -1
    written: bool = False


class SharedDevice:
    """A device and its memory, shared out in arenas.

    A program can reach its client's arena only, which starts as zeros and the module's image;
    when another client has run last, the core's own memories are filled with zeros before.
    After a fault or time-out the device is reset before the next use, which makes all contents
    undefined: images are then written again, each when its client comes next.

    Parameters
    ----------
    device : Device
        Owned by this object; nothing is allocated on it yet.
    limits : Limits
        Memory, waiting requests and times.
    """

    def __init__(self, device: Device, limits: Limits) -> None:
        self.device = device
        self.limits = limits
        self.turns = Turns(limits.waiting)
        self._space = Space(limits.memory_bytes)
        self._base = device.allocate(self._space.nbytes)
        self._scrub = Arena(self._space.take(SCRUB_BYTES), SCRUB_BYTES)
        scrub = scrub_image(device.config).tobytes()
        self._scrub.image = Image("", ((0, SCRUB_BYTES),), scrub)
        self._last: Arena | None = None
        self._epoch = 0
        self._failed = False

    def open_arena(self, nbytes: int, alive: Alive) -> Arena:
        """Part of the memory for a client; DeviceError when there is not enough."""
        with self._turn(alive):
            return Arena(self._space.take(nbytes), nbytes)

    def close_arena(self, arena: Arena) -> None:
        """Give it back, whether or not it was its client's turn: nothing runs there any more."""
        self._space.give_back(arena.offset)

    def write(self, arena: Arena, offset: int, data: memoryview, alive: Alive) -> None:
        """Put bytes into an arena."""
        with self._turn(alive):
            self._make_ready(arena)
            self.device.write(arena.offset + offset, np.frombuffer(data, np.uint8))
            arena.written = True

    def read(self, arena: Arena, ranges: Ranges, alive: Alive) -> list[npt.NDArray[np.uint8]]:
        """Copies of ranges; DeviceError when a reset has made them undefined."""
        with self._turn(alive):
            before = arena.epoch
            self._make_ready(arena)
            if before >= 0 and arena.epoch != before:
                raise DeviceError("the device was reset since the last run; run again")
            return self._read(arena, ranges)

    def run(
        self,
        arena: Arena,
        launch: Launch,
        inputs: Sequence[tuple[int, memoryview]],
        outputs: Ranges,
        *,
        timeout: float | None,
        marks: Collection[int],
        alive: Alive,
    ) -> tuple[Outcome, list[npt.NDArray[np.uint8]]]:
        """Write inputs, run, and read outputs, with nobody in between; none after a fault."""
        limit = self.limits.run_seconds
        with self._turn(alive):
            self._make_ready(arena)
            for offset, data in inputs:
                self.device.write(arena.offset + offset, np.frombuffer(data, np.uint8))
            self._forget_others(arena)
            outcome = self._launch(launch, min(timeout or limit, limit), marks)
            return outcome, self._read(arena, outputs) if outcome.ok else []

    def address(self, arena: Arena) -> int:
        """Byte address of an arena for the core."""
        return self._base + arena.offset

    def close(self) -> None:
        self.device.close()

    @contextmanager
    def _turn(self, alive: Alive) -> Iterator[None]:
        with self.turns.turn(self.limits.queue_seconds, alive):
            yield

    def _launch(self, launch: Launch, timeout: float, marks: Collection[int] = ()) -> Outcome:
        self._failed = True
        outcome = self.device.run(launch, timeout=timeout, marks=marks)
        self._failed = not outcome.ok
        return outcome

    def _forget_others(self, arena: Arena) -> None:
        """Clear what another client's program has left in the core."""
        if self._last is arena:
            return
        self._last = None
        self._make_ready(self._scrub)
        launch = scrub_launch(self.address(self._scrub))
        self._launch(launch, self.limits.run_seconds).raise_for_status()
        self._last = arena

    def _read(self, arena: Arena, ranges: Ranges) -> list[npt.NDArray[np.uint8]]:
        return [np.array(self.device.read(arena.offset + at, size)) for at, size in ranges]

    def _make_ready(self, arena: Arena) -> None:
        """Reset the device after a failure, and put the arena's contents there if they are not."""
        if self._failed:
            self.device.reset()
            self._failed = False
            self._epoch += 1
        if arena.epoch == self._epoch:
            return
        lost, arena.written = arena.written, False
        self._clear(arena)
        for offset, chunk in arena.image.items() if arena.image else ():
            self.device.write(arena.offset + offset, chunk)
        arena.epoch = self._epoch
        if lost:
            raise DeviceError("the device was reset since the inputs were written; run again")

    def _clear(self, arena: Arena) -> None:
        """What clients before have left is nobody's business."""
        zeros = np.zeros(min(arena.nbytes, _PIECE), np.uint8)
        for offset in range(0, arena.nbytes, _PIECE):
            self.device.write(arena.offset + offset, zeros[: min(_PIECE, arena.nbytes - offset)])

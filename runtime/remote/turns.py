"""Whose turn it is: one user of a device at a time, in the order of asking."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vitral.errors import DeviceError

__all__ = ["Turns"]


class Turns:
    """A lock that is given in the order of asking, so that those who keep asking alternate.

    Parameters
    ----------
    waiting : int
        How many may wait while one has the turn.
    """

    def __init__(self, waiting: int) -> None:
        self._waiting = waiting
        self._queue: deque[object] = deque()  # its first one has the turn
        self._changed = threading.Condition()
        self._stopped = False

    @contextmanager
    def turn(self, seconds: float, alive: Callable[[], bool]) -> Iterator[None]:
        """Hold the turn inside the `with`.

        `alive` is asked when the turn comes whether it is still wanted.

        Raises
        ------
        DeviceError
            When too many wait, it does not come within `seconds`, nobody wants it any more, or
            there are no more turns.
        """
        ticket = self._ask()
        try:
            self._wait(ticket, seconds)
            if not alive():
                raise DeviceError("the client has gone")
            yield
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def stop(self) -> None:
        """Refuse all who wait or ask from now on; who has the turn keeps it."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _ask(self) -> object:
        with self._changed:
            if len(self._queue) > self._waiting:
                raise DeviceError(
                    f"the device is busy: {self._waiting} requests wait for it; try again later"
                )
            ticket = object()
            self._queue.append(ticket)
            return ticket

    def _wait(self, ticket: object, seconds: float) -> None:
        with self._changed:
            came = self._changed.wait_for(
                lambda: self._stopped or self._queue[0] is ticket, seconds
            )
            if self._stopped:
                raise DeviceError("the server is being stopped")
            if not came:
                raise DeviceError(
                    f"the device is busy: no turn came within {seconds:g} seconds; try again later"
                )

"""An asyncio loop in a thread of its own, for interrupts that only come as coroutines.

A notebook's loop is busy running the notebook, so waiting in it for an interrupt would never end.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, TimeoutError
from typing import Any, TypeVar

from vitral.errors import DeviceError

__all__ = ["EventLoopThread", "LoopInterrupt"]

CALL_SECONDS = 10.0
T = TypeVar("T")


class EventLoopThread:
    """A running loop; `close` ends it and its thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine there; at once, not when its result is asked for."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function there and give what it gives, or raise what it raises.

        Raises
        ------
        DeviceError
            When it takes more than 10 seconds.
        """

        async def run() -> T:
            return function()

        try:
            return self.submit(run()).result(CALL_SECONDS)
        except TimeoutError:
            raise DeviceError(f"the event loop is busy for {CALL_SECONDS:g} seconds") from None

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CALL_SECONDS)


class LoopInterrupt:
    """An interrupt that is waited for by awaiting `wait`.

    Parameters
    ----------
    loop : EventLoopThread
        Where.
    wait : callable
        Gives an awaitable that ends when the interrupt comes; letting it through is its first act.
    """

    def __init__(self, loop: EventLoopThread, wait: Callable[[], Awaitable[None]]) -> None:
        self._loop = loop
        self._wait = wait
        self._pending: Future[None] | None = None

    def arm(self) -> None:
        if self._pending is None or self._pending.done():

            async def run() -> None:
                await self._wait()

            self._pending = self._loop.submit(run())

    def wait(self, seconds: float) -> bool:
        if self._pending is None:
            raise DeviceError("an interrupt must be armed before it is waited for")
        try:
            self._pending.result(seconds)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        if self._pending is not None:
            self._pending.cancel()

"""Interrupts that come as coroutines, waited for outside of any loop."""

import asyncio
from collections.abc import Iterator

import pytest

from vitral.errors import DeviceError
from vitral.runtime.boards.event_loop import EventLoopThread, LoopInterrupt

pytestmark = pytest.mark.board


class Line:
    """An interrupt as pynq's: letting it through is the first act of `wait`."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.armed = 0

    async def wait(self) -> None:
        self.event.clear()
        self.armed += 1
        await self.event.wait()


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    thread = EventLoopThread()
    yield thread
    thread.close()
    thread.close()


def test_an_interrupt_is_let_through_when_armed(loop: EventLoopThread) -> None:
    line = Line()
    interrupt = LoopInterrupt(loop, line.wait)
    with pytest.raises(DeviceError, match="must be armed"):
        interrupt.wait(0)
    interrupt.arm()
    loop.call(lambda: None)
    assert line.armed == 1, "before anybody waits"
    assert not interrupt.wait(0.01)
    interrupt.arm()
    loop.call(lambda: None)
    assert line.armed == 1, "one that is still out is not asked for again"
    loop.call(line.event.set)
    assert interrupt.wait(5)
    interrupt.arm()
    loop.call(lambda: None)
    assert line.armed == 2
    assert not interrupt.wait(0.01)
    interrupt.close()


def test_it_works_where_a_loop_is_running(loop: EventLoopThread) -> None:
    """As in a notebook."""
    line = Line()
    interrupt = LoopInterrupt(loop, line.wait)

    async def cell() -> bool:
        interrupt.arm()
        loop.call(lambda: None)
        loop.call(line.event.set)
        return interrupt.wait(5)

    assert asyncio.run(cell())


def test_calls_give_back_what_they_raise(loop: EventLoopThread) -> None:
    assert loop.call(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        loop.call(lambda: 1 // 0)

"""Launch, end, errors, soft reset and watchdog, seen through the status register."""

from typing import Any

from amaranth.sim import Simulator

from vitral.hw.core.status import Status
from vitral.isa import Cause
from vitral.registers import register

START = register("control")["start"].mask
RESET = register("control")["soft_reset"].mask
VITRAL = register("control")["profile"].mask


class Driver:
    """Pokes a `Status` cycle by cycle and reads its fields."""

    def __init__(self, ctx: Any, part: Status) -> None:
        self.ctx, self.part = ctx, part

    async def tick(self, cycles: int = 1, **pulses: int) -> None:
        """Holds the inputs in `pulses` for the first cycle only."""
        for name, value in pulses.items():
            self.ctx.set(getattr(self.part, name), value)
        await self.ctx.tick()
        for name in pulses:
            self.ctx.set(getattr(self.part, name), 0)
        for _ in range(cycles - 1):
            await self.ctx.tick()

    async def fault(self, number: int, cause: Cause, index: int) -> None:
        port = self.part.faults[number]
        self.ctx.set(port.cause, cause)
        self.ctx.set(port.index, index)
        self.ctx.set(port.valid, 1)
        await self.ctx.tick()
        self.ctx.set(port.valid, 0)

    def hold(self, **values: int) -> None:
        for name, value in values.items():
            self.ctx.set(getattr(self.part, name), value)

    def flags(self) -> set[str]:
        word = self.ctx.get(self.part.status)
        fields = register("status").fields
        return {f.name for f in fields if f.name != "cause" and f.extract(word)}

    def error(self) -> tuple[int, int]:
        cause = register("status")["cause"].extract(self.ctx.get(self.part.status))
        return cause, self.ctx.get(self.part.error_index)

    def get(self, name: str) -> int:
        return self.ctx.get(getattr(self.part, name))


def simulate(bench: Any) -> None:
    part = Status(faults=3)

    async def run(ctx: Any) -> None:
        await bench(Driver(ctx, part))

    sim = Simulator(part)
    sim.add_clock(1e-6)
    sim.add_testbench(run)
    sim.run()


def test_good_run_ends_done_and_interrupts_when_enabled() -> None:
    async def bench(d: Driver) -> None:
        assert d.flags() == set()
        d.hold(control=START | VITRAL)
        assert d.get("launch") == 1
        await d.tick(control=START | VITRAL)
        assert (d.flags(), d.get("profile"), d.get("launch")) == ({"busy"}, 1, 0)
        await d.tick(5)
        await d.tick(1, finished=1, finish_index=9)
        await d.tick(4)
        assert (d.flags(), d.error(), d.get("irq")) == ({"done"}, (0, 0), 0)
        d.hold(irq_enable=1)
        assert (d.get("irq"), d.get("irq_status")) == (1, 1)
        await d.tick(irq_clear=1)
        assert (d.get("irq"), d.flags()) == (0, {"done"})

    simulate(bench)


def test_stages_are_cleared_once_between_end_and_done() -> None:
    async def bench(d: Driver) -> None:
        await d.tick(control=START)
        await d.tick(finished=1)
        clears = 0
        for _ in range(8):
            assert not (d.get("clear") and "done" in d.flags())
            clears += d.get("clear")
            await d.tick()
        assert clears == 1

    simulate(bench)


def test_tokens_left_is_looked_at_after_the_last_push() -> None:
    async def bench(d: Driver) -> None:
        await d.tick(control=START)
        await d.tick(finished=1, finish_index=41)
        await d.tick(tokens_left=1)
        await d.tick(4)
        assert (d.flags(), d.error()) == ({"done", "error"}, (Cause.TOKENS_LEFT, 41))
        await d.tick(control=START)
        assert (d.flags(), d.error()) == ({"busy"}, (0, 0))

    simulate(bench)


def test_first_fault_stays_and_the_bus_drains_before_done() -> None:
    async def bench(d: Driver) -> None:
        await d.tick(control=START)
        d.hold(bus_busy=1)
        await d.fault(2, Cause.DRAM_BOUNDS, 5)
        await d.fault(0, Cause.SRAM_BOUNDS, 3)
        for _ in range(10):
            assert (d.flags(), d.get("stop"), d.get("clear")) == ({"busy"}, 1, 0)
            await d.tick()
        d.hold(bus_busy=0)
        await d.tick(3)
        assert (d.flags(), d.error()) == ({"done", "error"}, (Cause.DRAM_BOUNDS, 5))

    simulate(bench)


def test_start_is_refused_while_busy_until_the_next_accepted_command() -> None:
    async def bench(d: Driver) -> None:
        await d.tick(control=START)
        await d.tick(control=START)
        assert d.flags() == {"busy", "refused"}
        await d.tick(finished=1)
        await d.tick(4)
        assert d.flags() == {"done", "refused"}
        await d.tick(control=START)
        assert d.flags() == {"busy"}

    simulate(bench)


def test_soft_reset_drains_then_clears_everything() -> None:
    async def bench(d: Driver) -> None:
        d.hold(irq_enable=1)
        await d.tick(control=START)
        await d.tick(finished=1)
        await d.tick(4)
        assert d.get("irq") == 1
        await d.tick(control=START)
        d.hold(bus_busy=1)
        await d.tick(3)
        await d.tick(control=RESET)
        assert (d.flags(), d.get("stop")) == ({"resetting"}, 1)
        await d.tick(4, control=START)
        assert d.flags() == {"resetting", "refused"}
        d.hold(bus_busy=0)
        await d.tick(3)
        assert (d.flags() - {"refused"}, d.error(), d.get("irq")) == (set(), (0, 0), 0)

    simulate(bench)


def test_watchdog_needs_a_busy_bus_without_progress() -> None:
    async def bench(d: Driver) -> None:
        d.hold(watchdog=10)
        await d.tick(control=START)
        await d.tick(30)
        d.hold(bus_busy=1)
        for _ in range(5):
            await d.tick(8)
            await d.tick(bus_progress=1)
        assert d.flags() == {"busy"}
        await d.tick(12)
        assert (d.flags(), d.error()[0]) == ({"done", "error"}, Cause.BUS_HUNG)
        await d.tick(control=START)
        assert d.flags() == {"done", "error", "refused"}
        d.hold(bus_busy=0)
        await d.tick(3)
        await d.tick(control=START)
        assert d.flags() == {"busy"}

    simulate(bench)


def test_soft_reset_on_a_hung_bus_says_so() -> None:
    async def bench(d: Driver) -> None:
        d.hold(watchdog=6, bus_busy=1)
        await d.tick(control=RESET)
        assert d.flags() == {"resetting"}
        await d.tick(12)
        assert (d.flags(), d.error()[0]) == ({"done", "error"}, Cause.BUS_HUNG)

    simulate(bench)


def test_watchdog_off_waits_for_ever() -> None:
    async def bench(d: Driver) -> None:
        d.hold(bus_busy=1, watchdog=0)
        await d.tick(control=RESET)
        await d.tick(200)
        assert d.flags() == {"resetting"}

    simulate(bench)

"""Netlists as C++: random circuits against Amaranth's simulator, and what is saved."""

import ctypes
import random
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]  # no stub
from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Module,
    Mux,
    Signal,
    Value,
)
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator

from vitral.config import CoreConfig
from vitral.sim.rtl import build
from vitral.sim.rtl.emit import emit_cpp
from vitral.sim.rtl.netlist.cpp import write_cpp
from vitral.sim.rtl.netlist.dots import find_dots
from vitral.sim.rtl.netlist.flatten import flatten
from vitral.sim.rtl.netlist.netlist import Netlist, Operator, width_of
from vitral.sim.rtl.netlist.rtlil import NetlistError, read_rtlil
from vitral.sim.rtl.toolchain import find_compiler

CYCLES = 60
LEAST_UNITS = 100
"""Units of the default core that can rest."""

MOST_LINES = 3_000
"""Lines of the largest unit of the default core."""

MOST_TEXT = 20_000
"""Lines of all of its C++."""

WIDTHS = (1, 1, 1, 2, 5, 8, 16, 31, 32, 33, 48, 63, 64, 65, 100, 128, 200)


class Circuit:
    """Random registers, a memory, conditions and operators, in a few instances."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.m = Module()
        self.inputs = [Signal(width, name=f"in_{n}") for n, width in enumerate((1, 1, 8, 32, 64))]
        self.registers = [
            Signal(width, name=f"r_{n}", init=rng.getrandbits(width) if width <= 128 else 0)
            for n, width in enumerate(rng.choices(WIDTHS, k=16))
        ]
        self.bits = [signal for signal in self.inputs + self.registers if len(signal) == 1]
        self.outputs = [Signal(len(r), name=f"out_{n}") for n, r in enumerate(self.registers)]
        for register, output in zip(self.registers, self.outputs, strict=True):
            self.m.d.comb += output.eq(register)
        self.instances = [Module() for _ in range(4)]
        for number, instance in enumerate(self.instances):
            self.m.submodules[f"instance_{number}"] = instance
        self._memory()
        for register in self.registers:
            self._set(register)

    def _memory(self) -> None:
        rng = self.rng
        m = rng.choice(self.instances)
        m.submodules.ram = ram = Memory(shape=40, depth=8, init=[])
        write, read, now = ram.write_port(), ram.read_port(), ram.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.bit()),
            write.addr.eq(self.value(3, 1)),
            write.data.eq(self.value(40, 1)),
            read.en.eq(self.bit()),
            read.addr.eq(self.value(3, 1)),
            now.addr.eq(self.value(3, 1)),
        ]
        self.words = [read.data, now.data]
        self.rng = rng

    def bit(self) -> Value:
        bits = self.rng.choices(self.bits, k=2)
        return self.rng.choice((bits[0], ~bits[0], bits[0] & bits[1], bits[0] | bits[1]))

    def value(self, width: int, depth: int) -> Value:
        """An expression of that width."""
        rng = self.rng
        if not depth:
            source = rng.choice([*self.inputs, *self.registers, *getattr(self, "words", [])])
            low = rng.randrange(len(source))
            return source[low : low + width]
        a, b = (self.value(min(width, 60), depth - 1) for _ in range(2))
        small = self.value(6, 0)
        choices = [
            a + b,
            a - b,
            a & b,
            a | b,
            a ^ b,
            ~a,
            a[:20] * b[:20],
            a.as_signed() + b.as_signed(),
            (a[:18].as_signed() * b[:18].as_signed()),
            a << small[:4],
            a >> small,
            a.as_signed() >> small,
            Mux(self.bit(), a, b),
            Mux(a < b, a, b),
            Mux(a.as_signed() <= b.as_signed(), b, Const(5, 7)),
            Cat(a[:7], b, a),
            Cat(a == b, a != b, a.any(), b.all(), a.xor()),
            self.value(width, 0),
        ]
        return rng.choice(choices)[:width]

    def _set(self, register: Signal) -> None:
        rng, width = self.rng, len(register)
        m, other = rng.choices(self.instances, k=2)
        kind = rng.choice((0, 1, 2, 3, 4) if width <= 100 else (0, 1, 4))
        if kind == 0:
            m.d.sync += register.eq(self.value(width, 2))
        elif kind == 1:
            with m.If(self.bit()):
                m.d.sync += register.eq(self.value(width, 2))
            with m.If(self.bit()):
                m.d.sync += register[: max(1, width // 2)].eq(self.value(width, 1))
        elif kind == 2:
            with m.If(self.bit()):
                m.d.sync += register.eq(self.value(width, 2))
            with m.Elif(self.bit()):
                m.d.sync += register.eq(register + 1)
            with m.Else():
                m.d.sync += register.eq(self.value(width, 1))
        elif kind == 3:
            with m.Switch(Cat(self.value(3, 1), Const(0, 3))[:3]):
                with m.Case(1, 2):
                    m.d.sync += register.eq(self.value(width, 2))
                with m.Case("1--"):
                    m.d.sync += register.eq(~register)
        else:
            wire = Signal(width, name=f"{register.name}_wire")
            with other.If(self.bit()):
                other.d.comb += wire.eq(self.value(width, 2))
            with m.If(self.bit()):
                m.d.sync += register.eq(wire)


class OddRows:
    """A memory whose rows end inside a byte, and a register copy of what it reads."""

    def __init__(self) -> None:
        self.m = Module()
        self.inputs = [Signal(width, name=f"in_{n}") for n, width in enumerate((1, 2, 64, 2))]
        enable, place, data, wanted = self.inputs
        self.m.submodules.ram = ram = Memory(shape=129, depth=4, init=[])
        write, read = ram.write_port(), ram.read_port(domain="comb")
        self.registers = [Signal(129, name="r_0")]
        self.outputs = [Signal(129, name="out_0")]
        self.m.d.comb += [
            write.en.eq(enable),
            write.addr.eq(place),
            write.data.eq(Cat(data, ~data, data[7])),
            read.addr.eq(wanted),
            self.outputs[0].eq(self.registers[0]),
        ]
        self.m.d.sync += self.registers[0].eq(read.data)


class WideMoves:
    """Wide registers that swap, follow each other, and are read while they move."""

    def __init__(self) -> None:
        self.m = m = Module()
        self.inputs = [Signal(width, name=f"in_{n}") for n, width in enumerate((1, 1, 1, 64))]
        swap, move, shift, data = self.inputs
        inner = Module()
        m.submodules.inner = inner
        self.registers = [Signal(192, name=f"r_{n}") for n in range(6)] + [Signal(64, name="r_6")]
        self.outputs = [Signal(len(r), name=f"out_{n}") for n, r in enumerate(self.registers)]
        m.d.comb += [output.eq(r) for r, output in zip(self.registers, self.outputs, strict=True)]
        left, right, first, second, third, mixed, total = self.registers
        with inner.If(swap):
            inner.d.sync += [left.eq(right), right.eq(Cat(data, left))]
        with inner.If(move):
            inner.d.sync += [third.eq(second), first.eq(Cat(data, ~data, data)), second.eq(first)]
        with inner.If(shift):
            inner.d.sync += mixed.eq(Cat(mixed[64:], third[:64]))
        inner.d.sync += total.eq(total + (first[:64] & second[:64]) + mixed[:64] + left[128:])


class LateWake:
    """An instance that rests until another one, which looks at its state, wakes it in a cycle."""

    def __init__(self) -> None:
        self.m = m = Module()
        self.inputs = [Signal(width, name=f"in_{n}") for n, width in enumerate((4, 4))]
        wanted, other = self.inputs
        family, outside = Module(), Module()
        m.submodules.family, m.submodules.outside = family, outside
        mode, total = Signal(4, name="mode"), Signal(16, name="r_0")
        odd, step, follows, asked = Signal(), Signal(8), Signal(4), Signal(4)
        self.registers, self.outputs = [total], [Signal(16, name="out_0")]
        family.d.sync += mode.eq(wanted)
        family.d.comb += [odd.eq(mode != 5), step.eq(Mux(odd, mode + 3, 7))]
        outside.d.sync += follows.eq(other)
        outside.d.comb += asked.eq(follows + step)
        with family.If(asked[2]):
            family.d.sync += total.eq(total + Mux(odd, 100, 1) + asked)
        m.d.comb += self.outputs[0].eq(total)


AnyCircuit = Circuit | OddRows | WideMoves | LateWake


def run_amaranth(circuit: AnyCircuit, stimuli: list[list[int]]) -> list[list[int]]:
    seen: list[list[int]] = []

    async def bench(ctx):
        for values in stimuli:
            for signal, value in zip(circuit.inputs, values, strict=True):
                ctx.set(signal, value)
            seen.append([ctx.get(output) for output in circuit.outputs])
            await ctx.tick()

    simulator = Simulator(circuit.m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return seen


def emit(inner: Module, ports: list[Signal]) -> str:
    m = Module()
    m.domains.sync = ClockDomain(reset_less=True)
    clk = Signal()
    m.d.comb += ClockSignal().eq(clk)
    m.submodules.circuit = inner
    return rtlil.convert(m, name="top", ports=[clk, *ports], emit_src=False)


@dataclass(frozen=True)
class Hints:
    """What `write_cpp` may be told about a circuit; `usual` may be a number of bits to assume."""

    together: tuple[str, ...] = ()
    restless: tuple[str, ...] = ()
    usual: int | Mapping[str, str] = 0


NONE = Hints()


def build_native(
    m: Module, ports: list[Signal], main: str, folder: Path, hints: Hints = NONE
) -> ctypes.CDLL:
    """The library of a circuit's C++ and of functions around it, which know it as `core`."""
    netlist = flatten(read_rtlil(emit(m, ports)), r"\top")
    usual = usual_bits(netlist, hints.usual) if isinstance(hints.usual, int) else hints.usual
    text = write_cpp(netlist, "Core", hints.together, hints.restless, usual)
    (folder / "core.h").write_text(text)
    (folder / "main.cpp").write_text(
        f'#include "core.h"\nusing namespace vitral;\nstatic Core core;\nextern "C" {{\n{main}}}\n'
    )
    library = folder / "circuit.so"
    include = Path(build.__file__).parent / "cpp"
    command = [find_compiler().path, "-std=c++17", "-faligned-new", "-O1", "-w", "-fPIC"]
    command += ["-shared", f"-I{include}", str(folder / "main.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def usual_bits(netlist: Netlist, count: int) -> dict[str, str]:
    """One bit of some registers and of an input, to be 0 or 1."""
    rng = random.Random(count)
    sources = [r for r, _ in netlist.registers if r.width <= 64][: count - 1]
    facts = {"in_0": "1"}
    for register in sources:
        place = rng.randrange(register.width)
        facts[register.name] = f"*{rng.choice('01')}{'-' * place}"
    return facts if count else {}


def run_native(
    circuit: AnyCircuit, stimuli: list[list[int]], folder: Path, hints: Hints = NONE
) -> list[list[int]]:
    sets = "\n".join(
        f"std::memcpy(&core.{s.name}, in + {64 * n}, sizeof core.{s.name});"
        for n, s in enumerate(circuit.inputs)
    )
    gets = "\n".join(
        f"std::memcpy(out + {64 * n}, &core.{s.name}, {(len(s) + 7) // 8});"
        for n, s in enumerate(circuit.outputs)
    )
    usual = "core.as_usual()" if hints.usual else "false"
    main = f"int step(const uint8_t* in, uint8_t* out) {{\n{sets}\n"
    main += f"core.settle();\n{gets}\nint usual = {usual};\ncore.edge();\nreturn usual;\n}}\n"
    ports = [*circuit.inputs, *circuit.outputs]
    step = build_native(circuit.m, ports, main, folder, hints).step
    usual_cycles = 0
    seen = []
    for values in stimuli:
        data = b"".join(value.to_bytes(64, "little") for value in values)
        out = ctypes.create_string_buffer(64 * len(circuit.outputs))
        usual_cycles += step(data, out)
        words = [out.raw[64 * n : 64 * n + 64] for n in range(len(circuit.outputs))]
        seen.append([int.from_bytes(word, "little") for word in words])
    assert not hints.usual or 0 < usual_cycles < len(stimuli), f"{usual_cycles} are usual"
    return seen


TOGETHER = ("circuit.instance_0", "circuit.instance_2")
HINTS = (
    NONE,
    Hints(TOGETHER),
    Hints(TOGETHER, ("circuit.instance_1", "circuit"), usual=1),
    Hints(TOGETHER, usual=2),
    Hints((), ("circuit.instance_0", "circuit")),
    Hints(("circuit",), ("circuit.instance_3",), usual=3),
    Hints(("circuit",), usual=7),
)


@pytest.mark.parametrize("seed", range(len(HINTS)))
def test_random_circuits_do_the_same_as_in_amaranth(seed: int, tmp_path: Path) -> None:
    """Every other one with two of its instances as one unit, some of these with usual values."""
    rng = random.Random(seed)
    circuit = Circuit(seed)
    stimuli = [[rng.getrandbits(len(s)) for s in circuit.inputs] for _ in range(CYCLES)]
    wanted = run_amaranth(circuit, stimuli)
    got = run_native(circuit, stimuli, tmp_path, HINTS[seed])
    for cycle, (row, other) in enumerate(zip(got, wanted, strict=True)):
        names = [s.name for s, a, b in zip(circuit.registers, row, other, strict=True) if a != b]
        assert not names, f"seed {seed}, cycle {cycle}: {names}"
    assert len({tuple(row) for row in wanted}) > CYCLES // 2  # they do change


def test_rows_that_end_inside_a_byte_keep_apart(tmp_path: Path) -> None:
    rng = random.Random(129)
    circuit = OddRows()
    stimuli = [[rng.getrandbits(len(s)) for s in circuit.inputs] for _ in range(CYCLES)]
    assert run_native(circuit, stimuli, tmp_path) == run_amaranth(circuit, stimuli)


def test_wide_registers_take_what_others_had_before(tmp_path: Path) -> None:
    rng = random.Random(192)
    circuit = WideMoves()
    stimuli = [[rng.getrandbits(len(s)) for s in circuit.inputs] for _ in range(CYCLES)]
    assert run_native(circuit, stimuli, tmp_path) == run_amaranth(circuit, stimuli)


def test_instances_that_wake_late_do_as_in_their_usual_case(tmp_path: Path) -> None:
    circuit = LateWake()
    rng = random.Random(5)
    stimuli = [[5 if cycle % 20 > 2 else 9, 0] for cycle in range(CYCLES)]
    for cycle in range(CYCLES):
        stimuli[cycle][1] = stimuli[cycle - 1][1] if cycle % 3 else rng.getrandbits(4)
    hints = Hints(("circuit.family",), usual={"circuit.family.mode": "0101"})
    assert run_native(circuit, stimuli, tmp_path, hints) == run_amaranth(circuit, stimuli)


def test_sums_of_products_of_bytes_become_dot_products() -> None:
    m = Module()
    m.domains.sync = ClockDomain(reset_less=True)
    clk, left, right, total = Signal(), Signal(64), Signal(64), Signal(32)
    m.d.comb += ClockSignal().eq(clk)
    products = [left[n:][:8].as_signed() * right[n:][:8].as_signed() for n in range(0, 64, 8)]
    value = Const(0, 32).as_signed()
    for product in products:
        value = (value + product)[:32].as_signed()
    m.d.sync += total.eq(value)
    text = rtlil.convert(m, name="top", ports=[clk, left, right, total], emit_src=False)
    netlist = flatten(read_rtlil(text), r"\top")
    find_dots(netlist)
    dots = [n for n in netlist.nodes.values() if isinstance(n, Operator) and n.kind == "dot"]
    assert max(width_of(node.operands[0]) for node in dots) == 64


def test_output_that_depends_on_an_input_is_refused() -> None:
    m = Module()
    a, b = Signal(name="a"), Signal(name="b")
    m.d.comb += b.eq(~a)
    text = rtlil.convert(m, name="top", ports=[a, b], emit_src=False)
    with pytest.raises(NetlistError, match="output b depends on input a"):
        write_cpp(flatten(read_rtlil(text), r"\top"), "Core")


def two_stages() -> tuple[Module, list[Signal]]:
    """A counter with an enable in one instance, and what follows it in another."""
    enable, total = Signal(name="enable"), Signal(8, name="total")
    m, first, second = Module(), Module(), Module()
    m.submodules.first, m.submodules.second = first, second
    count, doubled, seen = Signal(8), Signal(8), Signal(8)
    with first.If(enable):
        first.d.sync += count.eq(count + 1)
    first.d.comb += doubled.eq(count ^ (count << 1))
    second.d.sync += seen.eq(doubled & 0xFE)
    m.d.comb += total.eq(seen)
    return m, [enable, total]


def test_nothing_is_evaluated_while_nothing_changes(tmp_path: Path) -> None:
    m, ports = two_stages()
    main = """
    int step(int enable) {  // the number of units that are due after a cycle
        core.enable = enable;
        core.settle();
        core.edge();
        core.settle();
        int due = 0;
        for (uint64_t word : core.dirty) due += __builtin_popcountll(word);
        return due;
    }
    unsigned total() { return core.total; }
    """
    library = build_native(m, ports, main, tmp_path)
    assert [library.step(0) for _ in range(4)][1:] == [0, 0, 0]
    assert library.step(1) > 0
    assert [library.step(0) for _ in range(4)][2:] == [0, 0]
    assert library.total() == (1 ^ 2) & 0xFE
    assert all(library.step(1) > 0 for _ in range(3))


def test_what_only_a_branch_reads_wakes_nobody_while_it_is_not_taken(tmp_path: Path) -> None:
    """A counter that counts always, and an instance that takes it over on demand."""
    take, seen = Signal(name="take"), Signal(8, name="seen")
    m, first, second = Module(), Module(), Module()
    m.submodules.first, m.submodules.second = first, second
    count, taken = Signal(8), Signal(8)
    first.d.sync += count.eq(count + 1)
    with second.If(take):
        second.d.sync += taken.eq(count)
    m.d.comb += seen.eq(taken)
    main = """
    int step(int take) {
        core.take = take;
        core.settle();
        core.edge();
        core.settle();
        int due = 0;
        for (uint64_t word : core.dirty) due += __builtin_popcountll(word);
        return due;
    }
    unsigned seen() { return core.seen; }
    """
    library = build_native(m, [take, seen], main, tmp_path)
    counted = []
    for number, bit in enumerate((0, 0, 0, 1, 1, 0, 0, 1)):
        counted.append(library.step(bit))
        assert library.seen() == [0, 0, 0, 3, 4, 4, 4, 7][number]
    assert counted[1:] == [1, 1, 2, 2, 1, 1, 2]


def test_memory_that_was_written_from_outside_is_read_after_touch(tmp_path: Path) -> None:
    m, word = Module(), Signal(32, name="word")
    m.submodules.memory = memory = Memory(shape=32, depth=4, init=[])
    read = memory.read_port()
    m.d.comb += word.eq(read.data)
    main = """
    unsigned step(unsigned value, int touch) {
        core.memories([&](const char*, void* data, uint64_t, uint64_t) {
            *static_cast<uint32_t*>(data) = value;
        });
        if (touch) core.touch();
        core.edge();
        core.settle();
        return core.word;
    }
    """
    step = build_native(m, [word], main, tmp_path).step
    assert step(0, 0) == 0
    assert step(7, 1) == 7
    assert step(9, 0) == 7  # nobody said so
    assert step(9, 1) == 9


def test_default_core_has_whole_dot_products_and_many_units() -> None:
    """Guards tsim's speed where clocks cannot."""
    config = CoreConfig()
    text = emit_cpp(config)
    assert text is not None
    assert text.count(f"dot<{config.block}>(") == 2 * config.batch * config.block  # and as usual
    units = re.findall(r"::unit\d+\(\) \{\n(.*?)\n\}", text, re.DOTALL)
    assert len(units) > LEAST_UNITS
    assert max(unit.count("\n") for unit in units) < MOST_LINES
    assert text.count("\n") < MOST_TEXT
    row = config.block**2
    assert f"move<{row}>(now" in text  # a row of weights comes from its memory
    assert f"renew<{row}>" not in text  # and is neither compared nor copied
    assert not re.search(r"next\d+\.core_compute_execute_gemm_mac_(left|right)", text)

"""Random instructions with legal operands, and what of the shared memories each one touches."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from programs.image import HOT, Image
from programs.tokens import Access
from vitral.config import CoreConfig
from vitral.isa import (
    Advance,
    Alu,
    AluOp,
    Config,
    ConfigRegister,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Profile,
    Rounding,
    Stage,
    Store,
    Window,
    window_of,
    window_value,
)
from vitral.program import PAGE

__all__ = ["Maker"]

Made = tuple[Instruction, list[Access], bool]
Indices = npt.NDArray[np.int64]
Loops = tuple[dict[str, Any], dict[str, Indices]]

EMPTY = 0.1
"""Share of instructions that do nothing but move tokens."""
REGISTER_STRIDE = 128
LOAD_WEIGHTS = {
    Memory.INP: 4,
    Memory.WGT: 4,
    Memory.UOP: 3,
    Memory.ACC: 3,
    Memory.ACC_8BIT: 3,
    Memory.PARAM: 4,
}
PAD_SIDES = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")
SHARED = {
    Memory.INP: "inp",
    Memory.WGT: "wgt",
    Memory.ACC: "acc",
    Memory.ACC_8BIT: "acc",
}
"""On-chip memories that more than one stage uses."""


class Maker:
    """Draws one instruction after the other, following what it must know of their effects.

    That is: which micro-ops are on chip, so that loop factors keep indices in bounds, and which
    DRAM bytes were overwritten. Micro-ops that came from overwritten bytes may name any element.
    """

    def __init__(
        self,
        config: CoreConfig,
        profile: Profile,
        image: Image,
        rng: random.Random,
    ) -> None:
        self.config = config
        self.layout = config.layout
        self.isa = InstructionSet.of(config)
        self.profile = profile
        self.vitral = profile is Profile.VITRAL
        self.image = image
        self.rng = rng
        self.coverage: Counter[str] = Counter()
        self.uop_words = image.onchip.uop.copy()
        self.uop_known = np.ones(self.layout.uop_depth, bool)
        self.stored = np.zeros(image.dram.data.size, bool)
        self.makers: dict[Callable[[], Made], int] = {
            self._load: 12,
            self._store: 7,
            self._gemm: 6,
            self._alu: 5,
        }
        if self.vitral:
            self.makers |= {self._config: 1, self._window: 8, self._config_window: 3}
        self.window = window_of(0)

    def next(self) -> Made:
        """An instruction, its accesses, and whether it must take its own token."""
        (make,) = self.rng.choices(list(self.makers), list(self.makers.values()))
        return make()

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def _count(self, *words: object) -> None:
        name = f"{self.profile.name} " + " ".join(str(word) for word in words)
        self.coverage[name] += 1

    def _load(self) -> Made:
        weights = {m: w for m, w in LOAD_WEIGHTS.items() if self.vitral or m is not Memory.PARAM}
        (memory,) = self.rng.choices(list(weights), list(weights.values()))
        pad_value = self.vitral and memory not in (Memory.UOP, Memory.PARAM) and self._chance(0.4)
        if self._chance(EMPTY):
            self._count("LOAD", memory.name, "empty")
            return self._empty_load(memory, pad_value), [], False
        depth = len(self._target(memory))
        area, lowest = self._source(memory, depth)
        y, x = self._sizes(min(depth - lowest, 40))
        pads = self._pads(y, x, depth - lowest)
        count = _padded(y, x, pads)
        dram_base, stride, rows = self._rows(memory, area, y, x)
        insn = Load(
            memory=memory,
            sram_base=self._place(count, depth, lowest),
            dram_base=dram_base,
            y_size=y,
            x_size=x,
            x_stride=stride,
            pad_value=pad_value,
            **pads,
        )
        self._count("LOAD", memory.name)
        for side in PAD_SIDES:
            if pads[side]:
                self._count("LOAD", memory.name, side, *(["value"] if pad_value else []))
        if memory is Memory.UOP:
            self._follow_uops(insn, rows)
        accesses = [Access("dram", rows, write=False)]
        if memory in SHARED:
            where = slice(insn.sram_base, insn.sram_base + count)
            accesses.append(Access(SHARED[memory], where, write=True))
        return insn, accesses, memory is Memory.UOP

    def _source(self, memory: Memory, depth: int) -> tuple[tuple[int, int], int]:
        """A DRAM area to load from, and the first on-chip element that may take it."""
        if memory is not Memory.PARAM:
            return self.rng.choice((self.image.fixed, self.image.work, self.image.work)), 0
        if self._chance(0.7):
            return self.image.params, 0
        return self.image.fixed, depth // 2

    def _empty_load(self, memory: Memory, pad_value: bool) -> Load:
        """x or y is 0; everything else is arbitrary, as nothing is looked at."""
        rng = self.rng
        y, x = rng.choice(((0, 0), (0, rng.randrange(1 << 16)), (rng.randrange(1 << 16), 0)))
        return Load(
            memory=memory,
            sram_base=rng.randrange(1 << 16),
            dram_base=rng.getrandbits(32),
            y_size=y,
            x_size=x,
            x_stride=rng.randrange(1 << 16),
            pad_value=pad_value,
            **dict(zip(PAD_SIDES, (rng.randrange(16) for _ in PAD_SIDES), strict=True)),
        )

    def _store(self) -> Made:
        wide = self.vitral and self._chance(0.25)
        requant = self.vitral and not wide and self._chance(0.6)
        memory = Memory.ACC if wide else Memory.OUT
        if self._chance(EMPTY):
            self._count("STORE", memory.name, "empty")
            x, y = self.rng.choice(((0, 0), (0, 5), (5, 0)))
            return Store(memory=memory, x_size=x, y_size=y, sram_base=65535), [], False
        depth = self.layout.acc_depth
        y, x = self._sizes(min(depth, 40))
        dram_base, stride, rows = self._rows(memory, self.image.work, y, x)
        requantise = self._requant_fields(y, x) if requant else {}
        insn = Store(
            memory=memory,
            sram_base=self._place(y * x, depth),
            dram_base=dram_base,
            y_size=y,
            x_size=x,
            x_stride=stride,
            requant=requant,
            **requantise,
        )
        kinds = [insn.rounding.name, insn.advance.name] if requant else []
        self._count("STORE", memory.name, *kinds)
        self.stored[rows] = True
        read = Access("acc", slice(insn.sram_base, insn.sram_base + y * x), write=False)
        return insn, [read, Access("dram", rows, write=True)], False

    def _requant_fields(self, y: int, x: int) -> dict[str, Any]:
        """FLOAT32 uses the lower half of the parameters, whose multipliers are small."""
        rounding = self.rng.choice(list(Rounding))
        end = self.layout.param_depth // (2 if rounding is Rounding.FLOAT32 else 1)
        steps = {Advance.NONE: 1, Advance.ROW: y, Advance.ELEMENT: y * x}
        advance = self.rng.choice([kind for kind in Advance if steps[kind] <= end])
        base = self.rng.choice((0, end - steps[advance]))
        if self._chance(0.5):
            base = self.rng.randrange(end - steps[advance] + 1)
        return {"rounding": rounding, "advance": advance, "param_base": base}

    def _target(self, memory: Memory) -> npt.NDArray[np.generic]:
        name = "acc" if memory is Memory.ACC_8BIT else memory.name.lower()
        return getattr(self.image.onchip, name)

    def _sizes(self, limit: int) -> tuple[int, int]:
        y = min(self.rng.choice((1, 1, 2, 3, 5)), limit)
        x = self.rng.choice((1, 2, 3, 4, 7, 8, 16))
        return y, max(1, min(x, limit // y))

    def _pads(self, y: int, x: int, room: int) -> dict[str, Any]:
        """Pads of each side, as far as `room` elements hold them."""
        pads: dict[str, Any] = dict.fromkeys(PAD_SIDES, 0)
        for side in PAD_SIDES:
            if self._chance(0.25):
                pads[side] = self.rng.choice((1, 1, 2, 3, 15))
            if _padded(y, x, pads) > room:
                pads[side] = 0
        return pads

    def _place(self, count: int, depth: int, lowest: int = 0) -> int:
        """First on-chip element: near the start, at the very end, or anywhere."""
        last = depth - count
        near = self.rng.randrange(lowest, max(lowest, min(last, HOT)) + 1)
        return self.rng.choice((near, near, near, last, self.rng.randrange(lowest, last + 1)))

    def _rows(
        self, memory: Memory, area: tuple[int, int], y: int, x: int
    ) -> tuple[int, int, Indices]:
        """dram_base, x_stride and the DRAM byte offsets of a transfer that lies in `area`."""
        size = {
            Memory.UOP: self.layout.uop_bytes,
            Memory.INP: self.layout.inp_bytes,
            Memory.WGT: self.layout.wgt_bytes,
            Memory.ACC: self.layout.acc_bytes,
            Memory.ACC_8BIT: self.layout.acc8_bytes,
            Memory.OUT: self.layout.out_bytes,
            Memory.PARAM: self.layout.param_bytes,
        }[memory]
        zero = self.image.dram.base - self.image.bases[memory]
        first = -(-(zero + area[0]) // size)
        room = (zero + area[1]) // size - first
        stride = self.rng.choice((x, x, x + 1, x + self.rng.randrange(8), 0, max(1, x - 1)))
        if (y - 1) * stride + x > room:
            stride = (room - x) // max(1, y - 1)
        length = (y - 1) * stride + x
        offset = self._offset(room - length, length, PAGE // size)
        start = (first + offset) * size - zero
        row = np.arange(x * size)
        rows = start + np.arange(y)[:, None] * stride * size + row
        return first + offset, stride if y > 1 else self.rng.randrange(1 << 16), rows.ravel()

    def _offset(self, last: int, length: int, page: int) -> int:
        """An element of 0..`last`: an early one, `last`, or one from where a page's end is met."""
        edge = self.rng.randrange(page, max(last, page) + 1) // page * page
        across = edge - self.rng.randrange(1, length + 1)
        early = self.rng.randrange(min(last, 40) + 1)
        return self.rng.choice((early, early, last, min(max(across, 0), last)))

    def _follow_uops(self, insn: Load, rows: Indices) -> None:
        """Keep track of what a LOAD of micro-ops brings."""
        data = self.image.dram.data[rows].view(np.uint32).reshape(insn.y_size, insn.x_size)
        known = ~self.stored[rows].reshape(insn.y_size, insn.x_size, -1).any(axis=2)
        pads = ((insn.y_pad_0, insn.y_pad_1), (insn.x_pad_0, insn.x_pad_1))
        padded = np.pad(data, pads)
        where = slice(insn.sram_base, insn.sram_base + padded.size)
        self.uop_words[where] = padded.ravel()
        self.uop_known[where] = np.pad(known, pads, constant_values=True).ravel()

    def _loops(self, depths: dict[str, int], alu: bool) -> Loops:
        """Loop fields that keep every operand in bounds, and the elements each operand names."""
        loops = self._fitting_loops(depths, alu=alu)
        assert loops is not None, "micro-ops name elements within the memories"
        return loops

    def _fitting_loops(
        self, depths: dict[str, int], *, alu: bool = False, known: bool = False
    ) -> Loops | None:
        """The same with depths that micro-ops may exceed, and perhaps only for `known` ones."""
        rng = self.rng
        count = rng.choice((1, 1, 2, 3, 5))
        begin = self._place(count, self.layout.uop_depth)
        outer, inner = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 4))
        loops: dict[str, Any] = {
            "uop_bgn": begin,
            "uop_end": begin + count,
            "iter_out": outer,
            "iter_in": inner,
        }
        words = self.uop_words[begin : begin + count].astype(np.int64)
        if known and not self.uop_known[begin : begin + count].all():
            return None
        known = bool(self.uop_known[begin : begin + count].all())
        fmt = self.isa.alu_uop if alu else self.isa.gemm_uop
        indices: dict[str, Indices] = {}
        for name, depth in depths.items():
            values = (words & fmt[name].mask) >> fmt[name].low
            slack = depth - 1 - int(values.max()) if known else 0
            if slack < 0:
                return None
            out = self._factor(outer, slack, depth)
            within = self._factor(inner, slack - (outer - 1) * out, depth)
            loops |= {f"{name}_factor_out": out, f"{name}_factor_in": within}
            steps = np.arange(outer)[:, None, None] * out + np.arange(inner)[:, None] * within
            indices[name] = (steps + values).ravel() if known else np.arange(depth)
        return loops, indices

    def _factor(self, count: int, slack: int, depth: int) -> int:
        if count == 1:
            return self.rng.randrange(depth)  # multiplied by 0
        top = slack // (count - 1)
        return min(top, self.rng.choice((0, 1, 1, 2, 3, 16, top)))

    def _empty_loops(self) -> dict[str, Any]:
        return self.rng.choice(
            (
                {"uop_end": 5, "iter_in": 3},
                {"uop_end": 5, "iter_out": 3},
                {"uop_bgn": 6, "uop_end": 5, "iter_out": 2, "iter_in": 2},
                {"uop_bgn": 6, "uop_end": 6, "iter_out": 2, "iter_in": 2},
            )
        )

    def _gemm(self) -> Made:
        reset = self._chance(0.2)
        overwrite = self.vitral and self._chance(0.3)
        kind = "reset" if reset else "overwrite" if overwrite else "add"
        if self._chance(EMPTY):
            self._count("GEMM empty")
            return Gemm(reset=reset, overwrite=overwrite, **self._empty_loops()), [], False
        depths = {"dst": self.layout.acc_depth}
        if not reset:
            depths |= {"src": self.layout.inp_depth, "wgt": self.layout.wgt_depth}
        loops, indices = self._loops(depths, alu=False)
        self._count("GEMM", kind)
        accesses = [Access("acc", indices["dst"], write=True)]
        if not reset:
            accesses.append(Access("inp", indices["src"], write=False))
            accesses.append(Access("wgt", indices["wgt"], write=False))
        return Gemm(reset=reset, overwrite=overwrite, **loops), accesses, False

    def _alu(self) -> Made:
        operation = self.rng.choice(list(AluOp))
        use_imm = self._chance(0.5)
        imm = self.rng.choice((0, 1, -1, 7, -128, 127, 32767, -32768, self._small()))
        common: dict[str, Any] = {
            "alu_opcode": operation,
            "use_imm": use_imm,
            "imm": imm if use_imm else 0,
        }
        if self._chance(EMPTY):
            self._count("ALU empty")
            return Alu(**common, **self._empty_loops()), [], False
        depth = self.layout.acc_depth
        depths = {"dst": depth} if use_imm else {"dst": depth, "src": depth}
        loops, indices = self._loops(depths, alu=True)
        self._count("ALU", operation.name, "immediate" if use_imm else "tensor")
        touched = np.concatenate(list(indices.values()))
        return Alu(**common, **loops), [Access("acc", touched, write=True)], False

    def _small(self) -> int:
        return self.rng.randrange(-34, 35)

    def _config(self) -> Made:
        pads = [register for register in ConfigRegister if register is not ConfigRegister.WINDOW]
        return self._set(self.rng.choice(pads), self.rng.randrange(-(1 << 31), 1 << 31))

    def _config_window(self) -> Made:
        """Taps near to each other, or one whose distance does not matter."""
        taps = self.rng.choice((1, 2, 3, 3, 4))
        near = 2 * self.rng.choice((0, 0, 1, 2, 3, 7)) + 1
        distance = self.rng.randrange(1, 1 << 15, 2) if taps == 1 else near
        return self._set(ConfigRegister.WINDOW, window_value(taps, distance))

    def _set(self, register: ConfigRegister, value: int) -> Made:
        if register is ConfigRegister.WINDOW:
            self.window = window_of(value)
        stage, number = divmod(int(register), REGISTER_STRIDE)
        self._count("CONFIG", register.name)
        return Config(stage=Stage(stage), register=number, value=value), [], False

    def _window(self) -> Made:
        """Or, where the taps might not fit INP, a CONFIG that changes them."""
        taps, distance = self.window
        mode = self.rng.choice(((), ("overwrite",), ("maximum",), ("maximum", "overwrite")))
        flags: dict[str, Any] = dict.fromkeys(mode, True)
        if self._chance(EMPTY):
            self._count("WINDOW empty")
            return Window(**flags, **self._empty_loops()), [], False
        reach = (taps - 1) * distance
        depths = {"dst": self.layout.acc_depth, "src": self.layout.inp_depth - reach}
        if "maximum" not in mode:
            depths["wgt"] = self.layout.wgt_depth
        fit = self._fitting_loops(depths, known=taps > 1)
        if fit is None:
            return self._config_window()
        loops, indices = fit
        if "maximum" in mode:  # which looks at no weights
            for loop in ("out", "in"):
                loops[f"wgt_factor_{loop}"] = self.rng.randrange(self.layout.wgt_depth)
        self._count("WINDOW", *(mode or ("add",)), taps)
        if reach > taps - 1:
            self._count("WINDOW apart")
        sources = (indices["src"][:, None] + distance * np.arange(taps)).ravel()
        accesses = [
            Access("acc", indices["dst"], write=True),
            Access("inp", sources, write=False),
        ]
        if "wgt" in indices:
            accesses.append(Access("wgt", indices["wgt"], write=False))
        return Window(**flags, **loops), accesses, False


def _padded(y: int, x: int, pads: dict[str, Any]) -> int:
    """Elements that a LOAD writes."""
    return (pads["y_pad_0"] + y + pads["y_pad_1"]) * (pads["x_pad_0"] + x + pads["x_pad_1"])

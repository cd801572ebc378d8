"""What GEMM, WINDOW and ALU do to ACC: plain Python over lists of lanes, one by one."""

from collections.abc import Iterator

from vitral.isa import Alu, AluOp, Gemm, Uop, Window

__all__ = ["Lanes", "alu_lane", "run_alu", "run_gemm", "run_window", "wrap"]

Lanes = list[int]


def wrap(value: int) -> int:
    """The int32 with the same low 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def alu_lane(op: AluOp, x: int, y: int) -> int:
    """One lane of an ALU operation."""
    match op:
        case AluOp.MIN:
            return min(x, y)
        case AluOp.MAX:
            return max(x, y)
        case AluOp.ADD:
            return wrap(x + y)
        case AluOp.MUL:
            return wrap(x * y)
        case AluOp.SHR:
            return x >> min(y, 31) if y >= 0 else wrap(x << -y) if y > -32 else 0


def _steps(insn: Gemm | Window | Alu, uops: list[Uop], *names: str) -> Iterator[tuple[int, ...]]:
    for i in range(insn.iter_out):
        for j in range(insn.iter_in):
            for uop in uops[insn.uop_bgn : insn.uop_end]:
                yield tuple(
                    getattr(uop, n)
                    + i * getattr(insn, f"{n}_factor_out")
                    + j * getattr(insn, f"{n}_factor_in")
                    for n in names
                )


def run_gemm(
    insn: Gemm, uops: list[Uop], inp: list[Lanes], wgt: list[Lanes], acc: list[Lanes], block: int
) -> None:
    """Updates `acc`; elements are flat: inp (batch, block), wgt (out, in), acc (batch, out)."""
    for dst, src, weight in _steps(insn, uops, "dst", "src", "wgt"):
        if insn.reset:
            acc[dst] = [0] * len(acc[dst])
            continue
        rows = [inp[src][n : n + block] for n in range(0, len(inp[src]), block)]
        outs = [wgt[weight][n : n + block] for n in range(0, block * block, block)]
        dots = [sum(a * b for a, b in zip(r, o, strict=True)) for r in rows for o in outs]
        old = [0] * len(dots) if insn.overwrite else acc[dst]
        acc[dst] = [wrap(a + b) for a, b in zip(old, dots, strict=True)]


def run_window(
    insn: Window,
    uops: list[Uop],
    inp: list[Lanes],
    wgt: list[Lanes],
    acc: list[Lanes],
    block: int,
    window: tuple[int, int],
) -> None:
    """Updates `acc`, whose lanes are those of `inp`; `window` is (taps, distance)."""
    taps, distance = window
    for dst, src, weight in _steps(insn, uops, "dst", "src", "wgt"):
        inputs = [inp[src + tap * distance] for tap in range(taps)]
        for lane in range(len(acc[dst])):
            column = [values[lane] for values in inputs]
            if insn.maximum:
                result, combine = max(column), max
            else:
                weights = [wgt[weight][tap * block + lane % block] for tap in range(taps)]
                result = sum(x * w for x, w in zip(column, weights, strict=True))
                combine = int.__add__
            old = acc[dst][lane]
            acc[dst][lane] = result if insn.overwrite else wrap(combine(old, result))


def run_alu(insn: Alu, uops: list[Uop], acc: list[Lanes]) -> None:
    """Updates `acc` in place."""
    for dst, src in _steps(insn, uops, "dst", "src"):
        other = [insn.imm] * len(acc[dst]) if insn.use_imm else acc[src]
        acc[dst] = [alu_lane(insn.alu_opcode, x, y) for x, y in zip(acc[dst], other, strict=True)]

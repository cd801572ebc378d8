"""ALU operations at the edges of their operands; expected values from Python integers."""

import numpy as np
import pytest
from engines import EVERY, engine
from programs import assembled

from vitral.config import CoreConfig
from vitral.isa import AluOp, InstructionSet, Profile, Uop
from vitral.program import OnChip

CONFIG = CoreConfig()
ISA = InstructionSet.of(CONFIG)
MIN, MAX = -(2**31), 2**31 - 1
EDGES = (MIN, MIN + 1, -65536, -300, -33, -32, -31, -5, -1, 0, 1, 5, 31, 32, 33, 123456, MAX)


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def expected(op: AluOp, x: int, y: int) -> int:
    """The definition, on unbounded integers."""
    match op:
        case AluOp.MIN:
            return min(x, y)
        case AluOp.MAX:
            return max(x, y)
        case AluOp.ADD:
            return wrapped(x + y)
        case AluOp.MUL:
            return wrapped(x * y)
        case AluOp.SHR:
            return x >> min(y, 64) if y >= 0 else wrapped(x << min(-y, 64))


def run_alu(name: str, line: str, acc: np.ndarray, uops: list[Uop]) -> np.ndarray:
    """ACC after one ALU instruction on the given first elements and micro-ops."""
    onchip = OnChip.zeros(CONFIG)
    onchip.acc[: len(acc)] = acc
    onchip.uop[: len(uops)] = [ISA.encode_uop(uop, alu=True) for uop in uops]
    case = assembled(f"{line}\nFINISH", profile=Profile.VTA)
    outcome = engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip)
    assert outcome.ok, outcome.message
    return onchip.acc


@pytest.mark.parametrize("op", AluOp)
@pytest.mark.parametrize("name", EVERY)
def test_tensor_operands(name: str, op: AluOp) -> None:
    pairs = [(x, y) for x in EDGES for y in EDGES]
    pairs += [(0, 0)] * (-len(pairs) % 16)
    table = np.array(pairs, np.int64).reshape(-1, 16, 2)
    count = len(table)
    acc = np.concatenate([table[:, :, 0], table[:, :, 1]])[:, None, :]
    got = run_alu(
        name, f"ALU {op.name} uop=0:1 iter={count},1 dst=1,0 src=1,0", acc, [Uop(0, count)]
    )
    want = [expected(op, x, y) for x, y in pairs]
    assert got[:count].ravel().tolist() == want
    assert (got[count : 2 * count, 0] == table[:, :, 1]).all(), "operands must stay"


IMMEDIATES = [
    ("SHR", -5, 1, -3),
    ("SHR", -5, 16, -1),
    ("SHR", -1, 31, -1),
    ("SHR", MAX, 31, 0),
    ("SHR", MIN, 31, -1),
    ("SHR", 123456, 16, 1),
    ("SHR", 3, -4, 48),
    ("SHR", -1, -31, MIN),
    ("MAX", -200, -128, -128),
    ("MIN", 300, 127, 127),
    ("ADD", 0, -32768, -32768),
    ("ADD", MAX, 1, MIN),
    ("MUL", MAX, -32768, wrapped(MAX * -32768)),
]


@pytest.mark.parametrize(("op", "value", "imm", "want"), IMMEDIATES)
@pytest.mark.parametrize("name", EVERY)
def test_immediates(name: str, op: str, value: int, imm: int, want: int) -> None:
    acc = np.full((2, 1, 16), value)
    got = run_alu(name, f"ALU {op} imm={imm} uop=0:1 iter=1,1", acc, [Uop(0, 1)])
    assert got[0].tolist() == [[want] * 16]
    assert got[1].tolist() == [[value] * 16]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("imm", [32, 100, -32, -100, 32767, -32768])
def test_far_immediate_shifts_fill(name: str, imm: int) -> None:
    onchip = OnChip.zeros(CONFIG)
    onchip.acc[0] = -5
    word = ISA.alu["imm"].insert(imm, "ALU") | sum(
        ISA.alu[field].insert(value, "ALU")
        for field, value in {
            "opcode": 4, "alu_opcode": AluOp.SHR, "use_imm": 1,
            "uop_end": 1, "iter_out": 1, "iter_in": 1,
        }.items()
    )  # fmt: skip
    case = assembled([word, 3])
    assert engine(name, CONFIG).run(case.launch, case.dram, onchip=onchip).ok
    assert (onchip.acc[0] == (-1 if imm > 0 else 0)).all()


@pytest.mark.parametrize("name", EVERY)
def test_immediate_micro_op_ignores_its_source(name: str) -> None:
    acc = np.arange(64).reshape(4, 1, 16)
    got = run_alu(name, "ALU ADD imm=7 uop=0:1 iter=1,1", acc, [Uop(2, 1)])
    assert (got[2] == acc[2] + 7).all()


@pytest.mark.parametrize("name", EVERY)
def test_later_micro_ops_see_earlier_results(name: str) -> None:
    acc = np.ones((4, 1, 16), np.int64)
    chain = [Uop(1, 0), Uop(2, 1), Uop(3, 2), Uop(0, 3), Uop(0, 0)]
    got = run_alu(name, f"ALU ADD uop=0:{len(chain)} iter=1,2 dst=0,0 src=0,0", acc, chain)
    values = [1, 1, 1, 1]
    for _ in range(2):
        for uop in chain:
            values[uop.dst] += values[uop.src]
    assert got[:4, 0, 0].tolist() == values

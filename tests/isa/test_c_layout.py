"""Field positions equal those that a C compiler gives to bit-fields declared in that order."""

import shutil
import subprocess
from pathlib import Path

import pytest

from vitral.config import CoreConfig
from vitral.isa import InstructionSet, Opcode, Profile

CONFIGS = {
    "default": CoreConfig(),
    "block32": CoreConfig(block=32),
    "small": CoreConfig(block=8, uop_buffer=4 << 10, inp_buffer=4 << 10, wgt_buffer=8 << 10,
                        acc_buffer=16 << 10),
    "batch2": CoreConfig(batch=2),
    "short micro-ops": CoreConfig(block=4, uop_buffer=1 << 10, inp_buffer=1 << 10,
                                  wgt_buffer=1 << 10, acc_buffer=4 << 10),
}  # fmt: skip

HEADER = (
    ("opcode", 3),
    ("pop_prev", 1),
    ("pop_next", 1),
    ("push_prev", 1),
    ("push_next", 1),
)
TRANSFER = (
    *HEADER,
    ("memory", 3),
    ("sram_base", 16),
    ("dram_base", 32),
    ("y_size", 16),
    ("x_size", 16),
    ("x_stride", 16),
)
PADS = (("y_pad_0", 4), ("y_pad_1", 4), ("x_pad_0", 4), ("x_pad_1", 4))

Fields = tuple[tuple[str, int], ...]


def declared(config: CoreConfig) -> dict[Opcode, Fields]:
    """Widths in declaration order, written down here from the public description of VTA."""
    layout = config.layout
    uop, acc = layout.uop_index_bits, layout.acc_index_bits
    inp, wgt = layout.inp_index_bits, layout.wgt_index_bits
    loops = (
        *HEADER,
        ("reset", 1),
        ("uop_bgn", uop),
        ("uop_end", uop + 1),
        ("iter_out", 14),
        ("iter_in", 14),
        ("dst_factor_out", acc),
        ("dst_factor_in", acc),
    )
    return {
        Opcode.LOAD: (*TRANSFER, *PADS),
        Opcode.STORE: TRANSFER,
        Opcode.GEMM: (
            *loops,
            ("src_factor_out", inp),
            ("src_factor_in", inp),
            ("wgt_factor_out", wgt),
            ("wgt_factor_in", wgt),
        ),
        Opcode.ALU: (
            *loops,
            ("src_factor_out", acc),
            ("src_factor_in", acc),
            ("alu_opcode", 3),
            ("use_imm", 1),
            ("imm", 16),
        ),
    }


def c_program(structs: dict[Opcode, Fields]) -> str:
    """Prints, per field, the 128-bit mask of its bits: opcode, name, high and low word."""
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <string.h>"]
    body = []
    for opcode, members in structs.items():
        name = opcode.name.lower()
        fields = " ".join(f"uint64_t {field} : {width};" for field, width in members)
        lines.append(f"struct {name} {{ {fields} }};")
        for field, _ in members:
            body.append(
                f"{{ struct {name} s; uint64_t w[2] = {{0, 0}};"
                f' _Static_assert(sizeof s <= sizeof w, "{name}");'
                f" memset(&s, 0, sizeof s); s.{field} = ~(uint64_t)0; memcpy(w, &s, sizeof s);"
                f' printf("{opcode.name} {field} %016llx %016llx\\n",'
                " (unsigned long long)w[1], (unsigned long long)w[0]); }"
            )
    return "\n".join([*lines, "int main(void) {", *body, "return 0; }"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", CONFIGS)
def test_positions_equal_the_c_compilers(name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    isa = InstructionSet.of(config)
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    source.write_text(c_program(declared(config)))
    subprocess.run(["gcc", "-o", str(program), str(source)], check=True)
    printed = subprocess.check_output([str(program)], text=True).splitlines()
    checked = 0
    for line in printed:
        opcode, field, high, low = line.split()
        fmt = isa.format_of(Opcode[opcode])
        if field not in fmt:
            assert (opcode, field) == ("ALU", "reset")  # declared, but without a meaning
            continue
        assert fmt[field].mask == int(high + low, 16), f"{opcode} {field}"
        checked += 1
    base = [f for code in declared(config) for f in isa.format_of(code) if not f.profile]
    assert checked == len(base)
    assert Profile.VTA == 0

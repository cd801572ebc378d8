"""Golden encodings of VTA HW_VER 0.0.2 in its default configuration, and the text of each.

The words were produced from VTA's own C structures; they are facts, not our output.
"""

__all__ = ["UOPS", "WORDS", "word_of"]

WORDS: dict[str, tuple[int, int]] = {
    "LOAD INP sram=16 dram=0x12345 y=4 x=8 stride=14 pad=1,0,1,1 pop_next push_next": (
        0x0000048D14004150,
        0x1101000E00080004,
    ),
    "LOAD WGT sram=0 dram=0x100 y=1 x=9 stride=9 push_next": (
        0x00000004000000C0,
        0x0000000900090001,
    ),
    "LOAD UOP sram=0 dram=0x4000 y=1 x=4 stride=4": (
        0x0000010000000000,
        0x0000000400040001,
    ),
    "LOAD ACC_8BIT sram=7 dram=0xffffffff y=1 x=1 stride=1": (
        0x03FFFFFFFC001E80,
        0x0000000100010001,
    ),
    "STORE OUT sram=32 dram=0x800 y=2 x=8 stride=16 pop_prev push_prev": (
        0x0000002000008229,
        0x0000001000080002,
    ),
    "GEMM reset uop=0:1 iter=8,16 dst=16,1 src=0,0 wgt=0,0": (
        0x0020004000200082,
        0x0000000000000810,
    ),
    "GEMM uop=2:11 iter=14,14 dst=14,1 src=16,1 wgt=3,5 pop_prev pop_next push_prev push_next": (
        0x001C00700160027A,
        0x014030020400080E,
    ),
    "GEMM uop=8191:8192 iter=16383,16383 dst=2047,2047 src=2047,2047 wgt=1023,1023": (
        0x7FFFFFFC001FFF02,
        0xFFFFFFFFFFFFFFFF,
    ),
    "ALU SHR imm=8 uop=3:4 iter=1,64 dst=0,1 src=0,1": (0x0080000800800304, 0x0008B00200000800),
    "ALU SHR imm=-3 uop=3:4 iter=1,64 dst=0,1 src=0,1": (0x0080000800800304, 0xFFFDB00200000800),
    "ALU MIN imm=127 uop=3:4 iter=1,64 dst=0,1 src=0,1": (0x0080000800800304, 0x007F800200000800),
    "ALU MAX imm=0 uop=3:4 iter=1,64 dst=0,1 src=0,1 push_next": (
        0x0080000800800344,
        0x0000900200000800,
    ),
    "ALU ADD uop=5:6 iter=2,32 dst=32,1 src=32,1": (0x0040001000C00504, 0x0000200208000820),
    "FINISH": (0x0000000000000003, 0),
    "LOAD INP sram=0 dram=0x0 y=0 x=0 stride=0 pop_next": (0x0000000000000110, 0),
    "LOAD UOP sram=0 dram=0x0 y=0 x=0 stride=0 push_prev push_next": (0x0000000000000060, 0),
    "STORE OUT sram=0 dram=0x0 y=0 x=0 stride=0 push_prev": (0x0000000000000221, 0),
}
"""Text, then the low and the high 64 bits."""

UOPS: dict[str, int] = {
    "UOP dst=5 src=9 wgt=3": 0x00C04805,
    "UOP dst=2047 src=0 wgt=1023": 0xFFC007FF,
}


def word_of(text: str) -> int:
    """The 128-bit word of a text of the table."""
    low, high = WORDS[text]
    return high << 64 | low

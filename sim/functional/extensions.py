"""The vector extensions that the product kernel can use."""

from dataclasses import dataclass

__all__ = ["EXTENSIONS", "Extension", "fitting"]


@dataclass(frozen=True)
class Extension:
    """A vector extension of the host: int32 lanes, each of which adds `depth` products at once.

    Depth 2 multiplies pairs of int16; depth 4 multiplies uint8 (INP, offset by 128) by int8.
    Without an intrinsic, products are written out. `sums` is the number of vector registers that
    a kernel keeps sums in, `feature` what the host must have.
    """

    name: str
    lanes: int
    depth: int
    intrinsic: str | None
    sums: int = 12
    feature: str | None = None


EXTENSIONS: tuple[Extension, ...] = (
    Extension("avx512vnni", 16, 4, "llvm.x86.avx512.vpdpbusd.512", feature="avx512vnni"),
    Extension("avxvnni", 8, 4, "llvm.x86.avx512.vpdpbusd.256", feature="avxvnni"),
    Extension("avx512bw", 16, 2, "llvm.x86.avx512.pmaddw.d.512", feature="avx512bw"),
    Extension("avx2", 8, 2, "llvm.x86.avx2.pmadd.wd", feature="avx2"),
    Extension("sse2", 4, 2, "llvm.x86.sse2.pmadd.wd", feature="sse2"),
    Extension("generic", 4, 2, None),
    Extension("generic bytes", 4, 4, None),
)
"""Best first. The last one is for tests: the arithmetic of VNNI on any host."""


def fitting(block: int, best: str) -> Extension:
    """The widest extension, at most `best`, whose vectors a block of outputs fills.

    Hosts that have an extension have those behind it too, apart from `avxvnni`, which is either
    the best or stands for the 256-bit form of `avx512vnni`.
    """
    names = [extension.name for extension in EXTENSIONS]
    usable = EXTENSIONS[names.index(best) :]
    return next(e for e in usable if block % e.lanes == 0)

"""The vector extensions that the product kernel can use."""

from dataclasses import dataclass

__all__ = ["EXTENSIONS", "Extension", "fitting"]


@dataclass(frozen=True)
class Extension:
    """A vector extension of the host: int32 lanes, and the multiply-and-add of 16-bit pairs.

    `sums` is the number of vector registers that a kernel keeps sums in.
    """

    name: str
    lanes: int
    intrinsic: str | None
    sums: int = 12


EXTENSIONS: tuple[Extension, ...] = (
    Extension("avx512bw", 16, "llvm.x86.avx512.pmaddw.d.512", 24),
    Extension("avx2", 8, "llvm.x86.avx2.pmadd.wd"),
    Extension("sse2", 4, "llvm.x86.sse2.pmadd.wd"),
    Extension("generic", 4, None),
)
"""Best first. With VNNI the compiler joins the multiply-and-add with the addition behind it."""


def fitting(block: int, best: str) -> Extension:
    """The widest extension, at most `best`, whose vectors a block of outputs fills."""
    names = [extension.name for extension in EXTENSIONS]
    usable = EXTENSIONS[names.index(best) :]
    return next(extension for extension in usable if block % extension.lanes == 0)

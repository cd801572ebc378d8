"""Reads what a detector's last layers say about boxes."""

from vitral.compiler.frontends.darknet.sections import Section
from vitral.errors import CompileError
from vitral.runtime.detection import Head

__all__ = ["head_of"]


def head_of(section: Section, value: str, shape: tuple[int, ...], image: tuple[int, int]) -> Head:
    """The head that a section describes; CompileError when it does not fit its input.

    `image` is (height, width) in pixels. Anchors of [region] count in cells, those of [yolo] in
    pixels.
    """
    flat = section.reals("anchors")
    region = section.kind == "region"
    picked = section.wholes("mask") or tuple(range(section.whole("num", 1)))
    if len(flat) % 2 or any(not 0 <= 2 * number < len(flat) for number in picked):
        raise CompileError(
            f"{section.where}: needs two anchors= for each of {len(picked)} boxes, got"
            f" {len(flat)} numbers"
        )
    classes = section.whole("classes", 20)
    wanted = len(picked) * (5 + classes)
    if len(shape) != 4 or shape[1] != wanted:
        raise CompileError(
            f"{section.where}: needs {len(picked)} x (5 + {classes}) = {wanted} channels, got a"
            f" layer of {list(shape)}"
        )
    high, wide = shape[2:] if region else image
    anchors = tuple((flat[2 * n] / wide, flat[2 * n + 1] / high) for n in picked)
    return Head(value=value, anchors=anchors, classes=classes, exclusive=region)

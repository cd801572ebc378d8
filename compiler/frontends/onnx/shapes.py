"""Static shapes for the inputs of a model with symbolic dimensions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index

from vitral.compiler.frontends.onnx.model import ModelInput
from vitral.errors import CompileError

__all__ = ["bind_shapes"]

_DTYPES = ("float32", "int8", "uint8", "int32")

Bindings = Mapping[str, Sequence[int] | int]


def bind_shapes(
    inputs: Sequence[ModelInput], shapes: Bindings
) -> Iterator[tuple[ModelInput, tuple[int, ...]]]:
    """Each input with its shape, all dimensions >= 1.

    `shapes` maps an input's name to its whole shape, or a symbol to its size.
    """
    shapes = _whole_numbers(shapes)
    names = {i.name for i in inputs}
    symbols = {d for i in inputs for d in i.shape or () if isinstance(d, str)}
    unknown = [name for name in shapes if name not in names | symbols]
    if unknown:
        raise CompileError(
            f"shapes: {unknown[0]!r} is neither an input ({', '.join(sorted(names))})"
            f" nor a symbolic dimension ({', '.join(sorted(symbols)) or 'there is none'})"
        )
    sizes: dict[str, int] = {}
    for given in inputs:
        if given.dtype not in _DTYPES:
            raise CompileError(
                f"input {given.name!r}: needs float32, int8, uint8 or int32, got {given.dtype}"
            )
        yield given, _bound(given, shapes, sizes)


def _whole_numbers(shapes: Bindings) -> Bindings:
    """The same bindings in plain integers, whatever integer types they came in."""
    if not isinstance(shapes, Mapping):
        raise CompileError(f"shapes must be a mapping of names to sizes, got {shapes!r}")
    plain: dict[str, Sequence[int] | int] = {}
    for name, value in shapes.items():
        try:
            plain[name] = _whole(value)
        except TypeError:
            raise CompileError(
                f"shapes: {name!r} needs whole numbers, or one for a symbol, got {value!r}"
            ) from None
    return plain


def _whole(value: Sequence[int] | int) -> tuple[int, ...] | int:
    """One number or several; TypeError for others, such as 3.0 or "3"."""
    if isinstance(value, Iterable):
        return tuple(int(index(n)) for n in value)
    return int(index(value))


def _bound(given: ModelInput, shapes: Bindings, sizes: dict[str, int]) -> tuple[int, ...]:
    where = f"input {given.name!r}"
    wanted = shapes.get(given.name)
    declared = given.shape
    if wanted is not None:
        whole = (wanted,) if isinstance(wanted, int) else tuple(wanted)
        if declared is not None and len(declared) != len(whole):
            raise CompileError(f"{where}: needs {len(declared)} dimensions, got {list(whole)}")
        declared = declared or whole
        pairs = list(zip(declared, whole, strict=True))
    elif declared is None:
        raise CompileError(f"{where}: its shape is unknown; give shapes={{{given.name!r}: (...)}}")
    else:
        pairs = [(d, _size(where, given.name, d, shapes)) for d in declared]
    return tuple(_checked(where, i, d, n, sizes) for i, (d, n) in enumerate(pairs))


def _size(where: str, name: str, dimension: int | str | None, shapes: Bindings) -> int:
    if isinstance(dimension, int):
        return dimension
    size = shapes.get(dimension) if dimension is not None else None
    if not isinstance(size, int):
        shown = "unknown" if dimension is None else f"symbolic ({dimension!r})"
        raise CompileError(f"{where}: a dimension is {shown}; give shapes={{{name!r}: (...)}}")
    return size


def _checked(
    where: str, index: int, declared: int | str | None, size: int, sizes: dict[str, int]
) -> int:
    if size < 1:
        raise CompileError(f"{where}: needs dimension {index} >= 1, got {size}")
    if isinstance(declared, int) and declared != size:
        raise CompileError(f"{where}: dimension {index} is {declared} in the model, got {size}")
    if isinstance(declared, str) and sizes.setdefault(declared, size) != size:
        raise CompileError(
            f"{where}: dimension {index} is {declared!r}, {sizes[declared]} elsewhere, got {size}"
        )
    return size

"""Operators whose result is known without computing: of constants, and those that pass on."""

from vitral.sim.rtl.netlist.netlist import Operator, Value, bit_of, cut, width_of

__all__ = ["bits_in", "folded", "is_constant"]


def is_constant(value: Value) -> bool:
    return all(isinstance(part, str) for part in value)


def bits_in(value: Value) -> str:
    """The constant bits of a value, highest first."""
    return "".join(part for part in reversed(value) if isinstance(part, str))


def folded(node: Operator) -> Value | None:
    """The value of an operator in terms of its operands, when that takes no computation."""
    if all(map(is_constant, node.operands)):
        value = _computed(node)
        if value is not None:
            return (f"{value & (1 << node.target.width) - 1:0{node.target.width}b}",)
    if node.kind == "mux":
        return _chosen(node)
    if node.kind in ("and", "or"):
        return _gated(node)
    if node.kind in ("reduce_or", "reduce_bool"):
        return _any(node)
    if node.kind in ("eq", "ne"):
        return _compared(node)
    return None


def _computed(node: Operator) -> int | None:
    """The result of constants; bits above the width are of no account."""
    numbers = [int(bits_in(value).replace("x", "0") or "0", 2) for value in node.operands]
    if node.signed:
        for place, value in enumerate(node.operands):
            width = width_of(value)
            if width and numbers[place] >> (width - 1):
                numbers[place] -= 1 << width
    left, right = numbers[0], numbers[-1]
    whole = (1 << width_of(node.operands[0])) - 1
    simple = {
        "add": lambda: left + right,
        "sub": lambda: left - right,
        "and": lambda: left & right,
        "or": lambda: left | right,
        "xor": lambda: left ^ right,
        "not": lambda: ~left,
        "eq": lambda: left == right,
        "ne": lambda: left != right,
        "lt": lambda: left < right,
        "le": lambda: left <= right,
        "gt": lambda: left > right,
        "ge": lambda: left >= right,
        "reduce_or": lambda: left != 0,
        "reduce_bool": lambda: left != 0,
        "reduce_and": lambda: left & whole == whole,
    }
    return int(simple[node.kind]()) if node.kind in simple else None


def _chosen(node: Operator) -> Value | None:
    no, yes, choice = node.operands
    if no == yes:
        return no
    return (yes if "1" in bits_in(choice) else no) if is_constant(choice) else None


def _gated(node: Operator) -> Value | None:
    width = node.target.width
    if any(width_of(v) != width for v in node.operands):
        return None
    left, right = node.operands
    if left == right:
        return left
    for gate, value in ((left, right), (right, left)):
        if is_constant(gate) and len(set(bits_in(gate))) == 1:
            return value if ("1" in bits_in(gate)) == (node.kind == "and") else gate
    return None


def _any(node: Operator) -> Value | None:
    """Constant zeros are of no account; one bit is itself."""
    (value,) = node.operands
    if any("1" in part for part in value if isinstance(part, str)):
        return ("1".zfill(node.target.width),)
    left = tuple(part for part in value if not isinstance(part, str))
    if width_of(left) == 1 == node.target.width:
        return left
    node.operands = (left or ("0",),)
    return None


def _compared(node: Operator) -> Value | None:
    """Values with a bit that differs, whatever the other bits are."""
    if node.signed or node.target.width != 1:
        return None
    width = max(map(width_of, node.operands))
    for place in range(width):
        bits = [bit_of(value, place) or ("0",) for value in node.operands]
        if all(map(is_constant, bits)) and bits[0] != bits[1]:
            return ("1" if node.kind == "ne" else "0",)
    left, right = (tuple(cut(value, 0, width)) for value in node.operands)
    if left == right and width_of(left) == width:
        return ("1" if node.kind == "eq" else "0",)
    return None

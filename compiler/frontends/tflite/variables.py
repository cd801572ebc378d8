"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE."""

from vitral.compiler.frontends.tflite.builder import Value
from vitral.compiler.frontends.tflite.scope import Scope

__all__ = ["OPERATORS"]

_DTYPES = ("int8", "uint8", "float32")


def _var_handle(scope: Scope) -> Value:
    """A value that stands for the variable of that name."""
    shared = scope.node.options.get("SharedName", b"").decode(errors="replace")
    return Value(name=shared or scope.name, shape=(), dtype="resource")


def _call_once(scope: Scope) -> tuple[Value, ...]:
    """Initial values are the caller's to feed."""
    return ()


def _read_variable(scope: Scope) -> Value:
    if scope.output.dtype not in _DTYPES:
        raise scope.fail(f"needs a variable of {' or '.join(_DTYPES)}, got {scope.output.dtype}")
    return scope.states.read(_variable(scope), scope.output, scope.builder)


def _assign_variable(scope: Scope) -> tuple[Value, ...]:
    scope.states.assign(_variable(scope), scope.value(1), scope.tensor(1))
    return ()


def _variable(scope: Scope) -> str:
    handle = scope.value(0)
    if handle.dtype != "resource":
        raise scope.fail(f"needs a variable's handle, got {handle.dtype}")
    return handle.name


OPERATORS = {
    "VAR_HANDLE": _var_handle,
    "CALL_ONCE": _call_once,
    "READ_VARIABLE": _read_variable,
    "ASSIGN_VARIABLE": _assign_variable,
}

"""The exceptions that Vitral raises on purpose; each message is one line and says what to do."""

__all__ = [
    "BitstreamError",
    "CompileError",
    "ConfigError",
    "DeviceError",
    "ExecutionFault",
    "IsaError",
    "ModuleError",
    "QuantizeError",
    "VerifyError",
    "VitralError",
]


class VitralError(Exception):
    """Base of every error a caller of Vitral can act on."""


class ConfigError(VitralError, ValueError):
    """A core configuration that cannot be built, with the numbers that do not fit."""


class IsaError(VitralError, ValueError):
    """An instruction, micro-op or assembly line that the instruction set does not have."""


class CompileError(VitralError, ValueError):
    """A model that is malformed or cannot be compiled; names the node or tensor."""


class QuantizeError(VitralError, ValueError):
    """A float model, its calibration data or a choice that cannot be quantized with."""


class VerifyError(VitralError, ValueError):
    """A program that the verifier refuses; names the instruction."""


class ModuleError(VitralError, ValueError):
    """A compiled module file that is truncated, corrupt or of another version."""


class DeviceError(VitralError, RuntimeError):
    """A device that cannot run what it was given, or did not answer in time."""


class BitstreamError(VitralError, RuntimeError):
    """A bitstream that cannot be built: the tool is absent, or failed."""


class ExecutionFault(DeviceError):
    """A program stopped with an error status.

    Attributes
    ----------
    cause : int
        The cause code, a value of :class:`vitral.isa.Cause`.
    index : int
        Number of the faulting instruction in program order, from 0.
    """

    def __init__(self, message: str, *, cause: int, index: int) -> None:
        super().__init__(message)
        self.cause = cause
        self.index = index

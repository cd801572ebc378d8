"""A first read that cannot hang its caller.

A processor that loads from a bridge without anything behind waits for ever, and no signal ends
that; so another process does it first.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from vitral.errors import DeviceError

__all__ = ["probe_word"]

PROBE_SECONDS = 5.0
_SCRIPT = """
import mmap, os, sys
path, offset = sys.argv[1], int(sys.argv[2])
inside = offset % mmap.PAGESIZE
file = os.open(path, os.O_RDWR | os.O_SYNC)
view = memoryview(mmap.mmap(file, mmap.PAGESIZE, offset=offset - inside)).cast("I")
os.write(1, str(view[inside // 4]).encode())
os._exit(0)
"""


def probe_word(path: Path, offset: int, seconds: float = PROBE_SECONDS) -> int:
    """The 32-bit word at a byte offset of a device file, read by another process.

    Raises
    ------
    DeviceError
        When it does not come in time, or the process cannot read it.
    """
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(path), str(offset)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _leave(process)
        raise DeviceError(
            f"{path}: no answer at {offset:#x} within {seconds:g} seconds: nothing is behind this"
            " address; power-cycle the board, then configure the FPGA first"
        ) from None
    if process.returncode:
        reason = errors.strip().splitlines()[-1:] or ["unknown"]
        raise DeviceError(f"{path}: cannot read at {offset:#x}: {reason[0]}")
    return int(output)


def _leave(process: "subprocess.Popen[str]") -> None:
    """End a process, and do not wait long for it: one that hangs in a load cannot end."""
    process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)

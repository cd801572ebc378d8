"""Builds the simulator library of a core as a shared object, cached.

Either from Verilog, by Verilator, or from the C++ that `sim.rtl.netlist` writes.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from vitral.errors import DeviceError
from vitral.sim.rtl.cache import cache_folder, digest_of, locked
from vitral.sim.rtl.toolchain import Toolchain, environment, find_compiler, find_toolchain

__all__ = ["Trace", "build_library", "build_native", "trace_kind"]

Trace = str
"""Waveform format of a library: "" (none), "fst" or "vcd"."""

HERE = Path(__file__).parent
SOURCES = ("harness.cpp", "memory.h", "model.h", "timeline.h", "words.h")
LIBRARY = "libcore.so"

VERILATOR_FLAGS = (
    "--cc",
    "--prefix Vcore",
    "-O3",
    "--x-assign fast",
    "--x-initial fast",
    "--noassert",
    "--no-timing",
    "--output-split 30000",
    "--output-split-cfuncs 1000",  # short functions: half the compile time, no slower
    "-Wno-fatal",
    "-Wno-lint",  # Amaranth's adders trip WIDTHEXPAND; hw's own tests lint with a reasoned list
    "-Wno-style",
)
COMMON_FLAGS = (
    *("-std=c++17", "-faligned-new", "-w", "-fPIC"),
    "-fvisibility=hidden",  # calls inside the library need no detour: twice as fast
)
COMPILER_FLAGS = (
    *COMMON_FLAGS,
    *("-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0"),
)
NATIVE_FLAGS = (*COMMON_FLAGS, "-DVITRAL_NATIVE=1", "-fno-gnu-unique")
FAST = ("-O3", "-march=native")
SLOW = ("-O0",)
RUNTIME = ("-O1",)
NATIVE_FAST = ("-O2", "-march=native")  # -O3 takes twice as long to build and is no faster

Item = tuple[Path, tuple[str, ...]]
"""A C++ file and its optimisation flags."""

_MEMORY = re.compile(
    r"^(\s*reg\s+\[\d+:0\]\s+(?:memory|lane\d+|bank_\d+)\s+\[\d+:\d+\])\s*;", re.MULTILINE
)
_STATE = re.compile(
    r"^(\s*input \[31:0\] (load_state|compute_state|store_state|status);\s*wire \[31:0\] \2)\s*;",
    re.MULTILINE,
)


def trace_kind(toolchain: Toolchain) -> Trace:
    """The waveform format that this host can build; FST is the smaller one."""
    return "fst" if toolchain.fst else "vcd"


def build_library(verilog: str, *, trace: Trace = "") -> Path:
    """The shared library that simulates `verilog`, built unless it is in the cache.

    Processes that want the same one wait for the first; a build that dies leaves nothing behind
    but its log.

    Parameters
    ----------
    verilog : str
        One top module with ports ``aclk``, ``aresetn``, ``s_axi_*``, ``m_axi_*`` and ``irq``.
    trace : str
        Waveform format to compile in; costs speed, so the plain library has none.

    Raises
    ------
    DeviceError
        When a tool is missing, or the build fails; names the log file.
    """
    toolchain = find_toolchain()
    sources = [(HERE / "cpp" / name).read_text() for name in SOURCES]
    flags = (*VERILATOR_FLAGS, *COMPILER_FLAGS, *FAST, *SLOW, *RUNTIME)
    key = digest_of(verilog, *sources, toolchain.digest, trace, *flags)
    folder = cache_folder() / "rtl" / key
    with locked(folder.with_suffix(".lock"), lambda: (folder / LIBRARY).exists()) as needed:
        if needed:
            _build(folder, verilog, trace, toolchain)
    return folder / LIBRARY


def build_native(model: str) -> Path:
    """The shared library that simulates a core given as C++, built unless it is in the cache.

    Parameters
    ----------
    model : str
        A header with class ``vitral::Core``, as `vitral.sim.rtl.netlist.cpp` writes it.

    Raises
    ------
    DeviceError
        When there is no C++ compiler, or the build fails; names the log file.
    """
    compiler = find_compiler()
    sources = [(HERE / "cpp" / name).read_text() for name in SOURCES]
    flags = (*NATIVE_FLAGS, *NATIVE_FAST)
    folder = cache_folder() / "rtl" / digest_of(model, *sources, compiler.digest, *flags)
    with locked(folder.with_suffix(".lock"), lambda: (folder / LIBRARY).exists()) as needed:
        if needed:
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as name:
                result = Path(name) / "result"
                result.mkdir()
                (result / "core.h").write_text(model)
                log = folder.with_suffix(".log")
                log.write_text("")
                command = [compiler.path, *flags, f"-I{result}", f"-I{HERE / 'cpp'}", "-shared"]
                command += [str(HERE / "cpp" / "harness.cpp"), "-o", str(result / LIBRARY)]
                _call(command, log, dict(os.environ))
                result.rename(folder)
    return folder / LIBRARY


def _build(folder: Path, verilog: str, trace: Trace, toolchain: Toolchain) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as name:
        work = Path(name)
        source = work / "core.v"
        source.write_text(_publish_states(_publish_memories(verilog)))
        log = folder.with_suffix(".log")
        log.write_text("")
        _verilate(work, source, trace, toolchain, log)
        _compile(work, trace, toolchain, log)
        result = work / "result"
        result.mkdir()
        shutil.copy(work / LIBRARY, result)
        shutil.copy(source, result)
        result.rename(folder)


def _publish_memories(verilog: str) -> str:
    """Let the harness reach the on-chip memories, and nothing else.

    Read-only as far as Verilator knows, so that no logic is re-evaluated for it; the harness
    writes while the core is idle and memories are read through a clocked port.
    """
    return _MEMORY.sub(r"\1 /*verilator public_flat_rd*/;", verilog)


def _publish_states(verilog: str) -> str:
    """Let the harness read what the state registers show, where the register file takes it in."""
    return _STATE.sub(r"\1 /*verilator public_flat_rd*/;", verilog)


def _verilate(work: Path, source: Path, trace: Trace, toolchain: Toolchain, log: Path) -> None:
    flags = [part for flag in VERILATOR_FLAGS for part in flag.split()]
    if trace:
        flags += [f"--trace-{trace}"]
    command = [str(toolchain.verilator), *flags, "--Mdir", str(work / "obj"), str(source)]
    _call(command, log)


def _compile(work: Path, trace: Trace, toolchain: Toolchain, log: Path) -> None:
    """Compile the model's files side by side, the hot ones optimised, and link them."""
    flags = [*_flags(trace, toolchain), f"-I{work / 'obj'}"]
    items = [(HERE / "cpp" / "harness.cpp", FAST), *_model_sources(work / "obj")]
    objects = _compile_all(items, work, flags, toolchain, log)
    objects += _runtime(work / "obj", trace, toolchain, log)
    libraries = ["-lz", "-llz4"] if trace == "fst" else []
    libraries += ["-latomic"] if "clang" in Path(toolchain.compiler).name else []
    command = [toolchain.compiler, "-shared", "-pthread", "-Wl,--no-undefined"]
    _call([*command, *map(str, objects), "-o", str(work / LIBRARY), *libraries], log)


def _compile_all(
    items: Sequence[Item], target: Path, flags: list[str], toolchain: Toolchain, log: Path
) -> list[Path]:
    def compile_one(item: Item) -> Path:
        source, level = item
        result = target / f"{source.stem}.o"
        command = [toolchain.compiler, *flags, *level, "-c", str(source), "-o", str(result)]
        _call(command, log)
        return result

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(compile_one, items))


def _runtime(model: Path, trace: Trace, toolchain: Toolchain, log: Path) -> list[Path]:
    """Objects of Verilator's own library, which all models share; compiled once."""
    include = toolchain.verilator_root / "include"
    names = [name for group, name in _listing(model) if group.startswith("VM_GLOBAL")]
    flags = _flags(trace, toolchain)
    key = digest_of(toolchain.digest, *flags, *RUNTIME, *names)
    folder = cache_folder() / "rtl" / f"runtime-{key}"
    with locked(folder.with_suffix(".lock"), folder.exists) as needed:
        if needed:
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as name:
                result = Path(name) / "result"
                result.mkdir()
                items = [(include / f"{name}.cpp", RUNTIME) for name in names]
                _compile_all(items, result, flags, toolchain, log)
                result.rename(folder)
    return [folder / f"{name}.o" for name in names]


def _flags(trace: Trace, toolchain: Toolchain) -> list[str]:
    include = toolchain.verilator_root / "include"
    flags = [*COMPILER_FLAGS, f"-I{include}", f"-I{include / 'vltstd'}"]
    flags += [f"-DVM_TRACE={int(bool(trace))}"]
    return flags + [f"-DVM_TRACE_{k.upper()}={int(k == trace)}" for k in ("fst", "vcd", "saif")]


def _model_sources(model: Path) -> Iterator[Item]:
    """The generated C++ files with their optimisation levels."""
    for group, name in _listing(model):
        if not group.startswith("VM_GLOBAL"):
            yield model / f"{name}.cpp", SLOW if group.endswith("SLOW") else FAST


def _listing(model: Path) -> Iterator[tuple[str, str]]:
    """(group, file stem) of every C++ file that the library needs, from Verilator's own list."""
    text = (model / "Vcore_classes.mk").read_text()
    for group, names in re.findall(r"^(VM_\w+) \+= \\\n((?:[ \t]+\w.*\n)*)", text, re.MULTILINE):
        for name in re.findall(r"^[ \t]+(\w+)", names, re.MULTILINE):
            yield group, name


def _call(command: list[str], log: Path, variables: dict[str, str] | None = None) -> None:
    """Run a tool with its output in the log; DeviceError when it fails."""
    settings = environment() if variables is None else variables
    done = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)
    with log.open("a") as file:
        file.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line] or ["no message"]
        raise DeviceError(f"building the RTL simulator failed, see {log}: {lines[0].strip()}")

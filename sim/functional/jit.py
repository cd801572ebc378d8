"""Compiles a simulator to native code for this host, and keeps the object code on disk."""

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64
from functools import lru_cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from vitral.config import CoreConfig
from vitral.sim.functional.extensions import EXTENSIONS
from vitral.sim.functional.words import ENTRY

__all__ = ["Native", "assembly", "cache_folder", "host_extensions", "load", "usable_extensions"]

SHARED_SOURCES = ("config.py", "encoding.py", "instructions.py", "isa.py")
SPEED_LEVEL = 3
DIGEST_BYTES = 32
TUNING = "-prefer-256-bit,+fast-dpwssd" if platform.machine() == "x86_64" else ""
"""Kernels want whole registers, and products joined with the addition behind them."""


class Native:
    """Loaded machine code; `run` takes the address of the context words."""

    def __init__(self, engine: llvm.ExecutionEngine, run: Callable[[int], int]) -> None:
        self.engine = engine  # owns the code that `run` is in
        self.run = run


def cache_folder() -> Path | None:
    """Where object code is kept: $VITRAL_CACHE, else ~/.cache/vitral; None without a home."""
    chosen = os.environ.get("VITRAL_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path.home() / ".cache" / "vitral"
    except RuntimeError:
        return None


def usable_extensions() -> list[str]:
    """Those of `EXTENSIONS` that this host has, best first."""
    features = llvm.get_host_cpu_features()
    return [e.name for e in EXTENSIONS if e.feature is None or features.get(e.feature)]


def host_extensions() -> str:
    """The best of `EXTENSIONS` that this host has."""
    return usable_extensions()[0]


@lru_cache(maxsize=16)
def load(config: CoreConfig, extensions: str) -> Native:
    """Native code of a configuration: from this process, from disk, or compiled now."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = _host_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    code = _object_code(config, extensions, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Native(engine, CFUNCTYPE(c_int64, c_int64)(engine.get_function_address(ENTRY)))


def assembly(config: CoreConfig, extensions: str, cpu: str) -> str:
    """The code for a processor, by LLVM's name for it, as text."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = _machine(cpu, "")
    return machine.emit_assembly(_optimised(config, extensions, machine))


def _host_machine() -> llvm.TargetMachine:
    return _machine(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def _machine(cpu: str, features: str) -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu,
        features=",".join(filter(None, (features, TUNING))),
        opt=SPEED_LEVEL,
        codemodel="jitdefault",
        jit=True,
    )


def _object_code(config: CoreConfig, extensions: str, machine: llvm.TargetMachine) -> bytes:
    folder = cache_folder()
    if folder is None:
        return _compile(config, extensions, machine)
    path = folder / "fsim" / f"{_key(config, extensions)}.o"
    code = _kept(path)
    if code is None:
        code = _compile(config, extensions, machine)
        _keep(path, code)
    return code


def _kept(path: Path) -> bytes | None:
    """The object code in a file, unless that is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _compile(config: CoreConfig, extensions: str, machine: llvm.TargetMachine) -> bytes:
    return machine.emit_object(_optimised(config, extensions, machine))


def _optimised(config: CoreConfig, extensions: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    from vitral.sim.functional.machine import emit_machine  # brings the IR builder along

    module = llvm.parse_assembly(str(emit_machine(config, extensions)))
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=SPEED_LEVEL)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    tuning.loop_unrolling = False  # kernels are unrolled where it pays; saves a third of the time
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return module


def _keep(path: Path, code: bytes) -> None:
    """Write a file whole or not at all; a cache that cannot be written is done without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)
    except OSError:
        return


def _key(config: CoreConfig, extensions: str) -> str:
    """Digest of all that the object code depends on."""
    parts = [
        config.digest,
        str(config.to_dict()),
        extensions,
        llvmlite.__version__,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        _source_digest(),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _source_digest() -> str:
    here = Path(__file__).resolve().parent
    import vitral.isa

    shared = Path(vitral.isa.__file__).resolve().parent
    files = [*sorted(here.glob("*.py")), *(shared / name for name in SHARED_SOURCES)]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()

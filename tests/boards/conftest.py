"""pynq's own code, run once for all tests: a process of Python 3.10 that does all its checks."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from digits import INT8_MODEL, load_images, model_input

import vitral
from vitral.errors import DeviceError

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SCRIPT = HERE / "pynq_checks.py"
SECONDS = 300


@dataclass(frozen=True)
class PynqRun:
    """What went wrong by check, "" for nothing, and the folder of the process.

    There `network.vitral` is the digit network, `network.npz` has images, logits and cycles of
    tsim, `pynq.npz` logits and cycles of the simulated board.
    """

    problems: dict[str, str]
    folder: Path


def script(name: str) -> ModuleType:
    """A script of the project, which is no part of the package."""
    path = ROOT / name
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(folder: Path) -> None:
    """A compiled network and what it must give, for an environment that cannot compile one."""
    module = vitral.compile(INT8_MODEL)
    module.save(folder / "network.vitral")
    images = [model_input(pixels) for pixels in load_images("demo").pixels[:3]]
    with vitral.Session(module, "tsim") as session:
        logits = [session.run(None, {"image": image})[0] for image in images]
        cycles = [outcome.cycles or 0 for outcome in session.outcomes()]
    np.savez(folder / "network.npz", images=images, logits=logits, cycles=cycles)
    script("examples/pynq/prepare.py").prepare(folder / "first_run", "pynq-z2", 3)


@pytest.fixture(scope="session")
def pynq_run(tmp_path_factory: pytest.TempPathFactory) -> PynqRun:
    """All checks, in one process; skips without Python 3.10."""
    try:
        python = script("scripts/pynq_environment.py").make_environment()
    except DeviceError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("pynq")
    prepare(folder)
    # simulators come from this environment; whatever pynq's has, numpy above all, goes before
    code = (
        "import runpy, sys\n"
        f"sys.path[:0] = {[str(ROOT), str(ROOT / 'tests')]}\n"
        f"sys.path += {[path for path in sys.path if path.endswith('site-packages')]}\n"
        f"sys.argv[:] = {[str(SCRIPT), str(folder)]}\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    run = subprocess.run(
        [str(python), "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    )
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert run.returncode == 0, run.stderr
    return PynqRun({line["check"]: line["problem"] for line in lines}, folder)

"""One network, the same bytes on every device; and the same cycles wherever the core is clocked."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from serving import served

import vitral
from vitral.runtime.devices.de10_nano import De10NanoDevice
from vitral.sim.board.linux import SimulatedLinux
from vitral.sim.board.rtl import RtlLogic

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("pynq")]
Results = tuple[npt.NDArray[np.int8], list[int | None]]
"""Logits (images, 1, 10), and the cycles of the last image's programs."""


def run(session: vitral.Session, images: npt.NDArray[np.float32]) -> Results:
    logits = [session.run(None, {"image": image})[0] for image in images]
    return np.stack(logits), [outcome.cycles for outcome in session.outcomes()]


@pytest.fixture(scope="module")
def everywhere(pynq_run: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """Results of every device, from one compiled file."""
    path: Path = pynq_run.folder / "network.vitral"
    module = vitral.Module.load(path)
    with np.load(pynq_run.folder / "network.npz") as archive:
        images = archive["images"]
    found: dict[str, Results] = {}
    with ExitStack() as stack:
        linux = SimulatedLinux(tmp_path_factory.mktemp("linux"), RtlLogic(module.config), seed=1)
        stack.callback(linux.close)
        server = stack.enter_context(served("tsim"))
        devices = {
            "fsim": "fsim",
            "tsim": "tsim",
            "de10-nano": De10NanoDevice(module.config, root=linux, registers="vitral"),
            "tcp": server.address,
        }
        for name, device in devices.items():
            with vitral.Session(path, device) as session:
                found[name] = run(session, images)
    with np.load(pynq_run.folder / "pynq.npz") as archive:
        found["pynq"] = archive["logits"], archive["cycles"].tolist()
    return found


@pytest.mark.parametrize("name", ["tsim", "pynq", "de10-nano", "tcp"])
def test_the_bytes_of_fsim(name: str, everywhere: dict[str, Results]) -> None:
    logits, _ = everywhere[name]
    wanted, _ = everywhere["fsim"]
    assert logits.dtype == wanted.dtype
    assert logits.shape == wanted.shape
    np.testing.assert_array_equal(logits, wanted)
    assert len(np.unique(logits.argmax(axis=-1))) > 1, "images must differ"


@pytest.mark.parametrize("name", ["pynq", "de10-nano", "tcp"])
def test_the_cycles_of_tsim(name: str, everywhere: dict[str, Results]) -> None:
    _, cycles = everywhere[name]
    _, wanted = everywhere["tsim"]
    assert None not in wanted
    assert cycles == wanted

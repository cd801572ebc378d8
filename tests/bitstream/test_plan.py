"""Plans and manifests as data: what changes a digest, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan
from vitral.bitstream.render import render
from vitral.config import CoreConfig
from vitral.errors import ConfigError, DeviceError

MakeProject = Callable[[str], tuple[Plan, Path]]
PLAN = Plan(
    target="pynq-z1",
    config=CoreConfig(),
    tool="vivado",
    version="2022.1",
    part="xc7z020clg400-1",
    clock_mhz=100,
    files={"build.tcl": "exit\n", "src/core.v": "module core; endmodule\n"},
    script="build.tcl",
    products=("vitral.bit",),
)
MANIFEST = Manifest(
    target="pynq-z1",
    core=CoreConfig().digest,
    config=CoreConfig().to_dict(),
    tool="vivado",
    tool_version="2022.1",
    part="xc7z020clg400-1",
    clock_mhz=100,
    build="vitral bitstream build --target pynq-z1",
)

pytestmark = pytest.mark.board
CHANGES: list[dict[str, Any]] = [
    {"target": "pynq-z2"},
    {"config": CoreConfig(mac_body="packed16")},
    {"tool": "quartus"},
    {"version": "2023.1"},
    {"part": "xc7z010clg400-1"},
    {"clock_mhz": 125},
    {"files": {**PLAN.files, "src/core.v": "module core; endmodule \n"}},
    {"files": {**PLAN.files, "more.xdc": ""}},
    {"script": "src/core.v"},
    {"products": ("vitral.bit", "vitral.hwh")},
]


def test_everything_in_a_plan_is_in_its_digest() -> None:
    assert {name for change in CHANGES for name in change} == {item.name for item in fields(Plan)}
    digests = {PLAN.digest, *(replace(PLAN, **change).digest for change in CHANGES)}
    assert len(digests) == 1 + len(CHANGES)


def test_the_digest_is_of_the_contents_alone() -> None:
    other = replace(PLAN, files=dict(reversed(list(PLAN.files.items()))))
    assert other.digest == PLAN.digest
    assert len(PLAN.digest) == 64


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"files": {"build.tcl": "", "../x": ""}}, r"inside its folder, got '../x'"),
        ({"files": {"build.tcl": "", "/x": ""}}, r"inside its folder, got '/x'"),
        ({"files": {"build.tcl": "", "plan.json": ""}}, r"inside its folder, got 'plan.json'"),
        ({"products": ("../vitral.bit",)}, r"inside its folder"),
        ({"script": "run.tcl"}, r"no file 'run.tcl' to run"),
    ],
)
def test_paths_that_lead_out(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        replace(PLAN, **changes)


def test_the_folder_has_every_file_and_a_list_of_them(tmp_path: Path) -> None:
    PLAN.write(tmp_path / "p")
    for name, text in PLAN.files.items():
        assert (tmp_path / "p" / name).read_text() == text
    record = json.loads((tmp_path / "p" / "plan.json").read_text())
    assert record["digest"] == PLAN.digest
    assert record["core"] == PLAN.config.digest
    assert set(record["files"]) == set(PLAN.files)


def test_templates_use_every_value_and_have_no_hole_left() -> None:
    with pytest.raises(ConfigError, match=r"no value for \['period_ns'\], no hole for \['perod'\]"):
        render("quartus/vitral.sdc", {"perod": 20})
    assert "-period 20 " in render("quartus/vitral.sdc", {"period_ns": 20})


def test_a_manifest_is_what_was_written(tmp_path: Path) -> None:
    built = replace(MANIFEST, bitstream="v.bit", sha256="0" * 64, fmax_mhz=104.5, plan=PLAN.digest)
    for manifest in (MANIFEST, replace(built, resources={"lut": 4})):
        manifest.write(tmp_path / "m.json")
        assert Manifest.read(tmp_path / "m.json") == manifest
    assert (MANIFEST.built, built.built) == (False, True)


def _without(name: str) -> dict[str, Any]:
    record = json.loads(MANIFEST.to_json())
    del record[name]
    return record


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ("{", "no manifest of a bitstream"),
        ("[]", "no manifest of a bitstream"),
        (json.dumps(_without("vitral_manifest")), "needs 'vitral_manifest'"),
        (json.dumps(_without("core")), "without 'core'"),
        (json.dumps({**_without("core"), "core": 7}), "'core' must be text, got 7"),
        (json.dumps({**_without("core"), "core": "", "x": 1}), "unknown entry 'x'"),
        (json.dumps({**_without("core"), "core": "", "vitral_manifest": 9}), "version 9, needs 1"),
    ],
)
def test_files_that_are_no_manifests(tmp_path: Path, record: str, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(record)
    with pytest.raises(DeviceError, match=f"m.json: .*{text}") as caught:
        Manifest.read(path)
    assert "\n" not in str(caught.value)


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"none\.json: no manifest"):
        Manifest.read(tmp_path / "none.json")

"""`vitral bitstream`: projects for vendors' tools, and the bitstreams that come out."""

import argparse
from pathlib import Path

from vitral.bitstream.backends import BACKENDS, backend_of, buildable, core_verilog
from vitral.bitstream.manifest import Manifest
from vitral.bitstream.plan import Plan, write_texts
from vitral.cli.options import add_json_option
from vitral.cli.output import print_table, write_json
from vitral.errors import BitstreamError
from vitral.targets import Target, find_target

__all__ = ["add_parsers"]

FOLDER = "bitstreams"
MANIFEST = "manifest.json"
_HEADER = ("target", "tool", "part", "clock MHz", "fmax MHz", "core", "bitstream")


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("bitstream", help="plan and build bitstreams")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    plan = actions.add_parser("plan", help="write a complete project folder for the tool")
    _add_target(plan)
    plan.add_argument("-o", "--output", metavar="DIR", required=True)
    plan.add_argument(
        "--scripts", action="store_true", help="only the scripts, without the core: to look at"
    )
    add_json_option(plan)
    plan.set_defaults(command=_plan)
    build = actions.add_parser("build", help="write the project folder and run the tool in it")
    _add_target(build)
    build.add_argument("-o", "--output", metavar="DIR", help="default: build/bitstreams/TARGET")
    add_json_option(build)
    build.set_defaults(command=_build)
    install = actions.add_parser("install", help="on a PYNQ board: make a bitstream the overlay")
    install.add_argument("folder", metavar="DIR", help="has vitral.bit, vitral.hwh, vitral.json")
    install.set_defaults(command=_install)
    listing = actions.add_parser("list", help="targets, their tools, and what has been built")
    listing.add_argument(
        "--folder", default=FOLDER, help="has TARGET/manifest.json (default %(default)s)"
    )
    add_json_option(listing)
    listing.set_defaults(command=_list)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target", metavar="NAME", required=True, help=f"one of {', '.join(BACKENDS)}"
    )


def _plan(args: argparse.Namespace) -> int:
    if args.scripts:
        target = find_target(args.target)
        write_texts(Path(args.output), backend_of(args.target).plan(target, "").scripts)
        return 0
    plan, folder = _write_plan(args.target, Path(args.output))
    if args.json:
        write_json(_plan_record(plan, folder), args.json)
    if args.json != "-":
        _print_plan(plan, folder)
    return 0


def _write_plan(name: str, folder: Path) -> tuple[Plan, Path]:
    """A target's plan, written into a folder that is made if it is not there."""
    backend = backend_of(name)
    if folder.exists() and not folder.is_dir():
        raise BitstreamError(f"{folder}: is no folder; name another one with -o")
    folder.mkdir(parents=True, exist_ok=True)  # before the work, should it not be possible
    target = find_target(name)
    plan = backend.plan(target, core_verilog(target))
    plan.write(folder)
    return plan, folder


def _plan_record(plan: Plan, folder: Path) -> dict[str, object]:
    return {
        "target": plan.target,
        "tool": plan.tool,
        "version": plan.version,
        "part": plan.part,
        "core": plan.config.digest,
        "digest": plan.digest,
        "folder": str(folder),
        "script": plan.script,
        "files": sorted(plan.files),
        "products": list(plan.products),
    }


def _print_plan(plan: Plan, folder: Path) -> None:
    print(f"plan     {plan.digest}")
    print(f"core     {plan.config.digest}")
    print(f"tool     {plan.tool} {plan.version} or later, part {plan.part}, {plan.clock_mhz} MHz")
    print(f"folder   {folder}: {len(plan.files)} files, run {plan.script}")


def _build(args: argparse.Namespace) -> int:
    check_tool = getattr(backend_of(args.target), "check_tool", None)
    if check_tool is not None:
        check_tool(args.target)
    folder = Path(args.output or Path("build", FOLDER, args.target))
    plan, folder = _write_plan(args.target, folder)
    if args.json != "-":
        _print_plan(plan, folder)
    manifest = backend_of(args.target).build(plan, folder)
    if args.json:
        write_json(_manifest_record(manifest), args.json)
    if args.json != "-":
        _print_manifest(manifest, folder)
    return 0


def _manifest_record(manifest: Manifest) -> dict[str, object]:
    return {
        "target": manifest.target,
        "bitstream": manifest.bitstream,
        "sha256": manifest.sha256,
        "plan": manifest.plan,
        "core": manifest.core,
        "tool": manifest.tool,
        "tool_version": manifest.tool_version,
        "clock_mhz": manifest.clock_mhz,
        "fmax_mhz": manifest.fmax_mhz,
        "resources": dict(manifest.resources),
    }


def _print_manifest(manifest: Manifest, folder: Path) -> None:
    used = ", ".join(f"{count} {name}" for name, count in manifest.resources.items())
    print(f"built    {folder / manifest.bitstream}, SHA-256 {manifest.sha256}")
    print(f"by       {manifest.tool} {manifest.tool_version}, fmax {manifest.fmax_mhz} MHz")
    print(f"takes    {used}")


def _install(args: argparse.Namespace) -> int:
    from vitral import overlay

    print(f"installed {overlay.install(Path(args.folder))}")
    return 0


def _list(args: argparse.Namespace) -> int:
    entries = [(target, _manifest(Path(args.folder), target)) for target in buildable()]
    if args.json:
        records = [
            {"target": target.name, "manifest": manifest and _manifest_record(manifest)}
            for target, manifest in entries
        ]
        write_json(records, args.json)
    if args.json != "-":
        print_table(_HEADER, [_row(target, manifest) for target, manifest in entries])
    return 0


def _manifest(folder: Path, target: Target) -> Manifest | None:
    path = folder / target.name / MANIFEST
    return Manifest.read(path) if path.is_file() else None


def _row(target: Target, manifest: Manifest | None) -> list[object]:
    fmax = manifest.fmax_mhz if manifest else None
    state = "no manifest"
    if manifest:
        state = f"{manifest.bitstream} {manifest.sha256[:12]}" if manifest.built else "not built"
        if manifest.core != target.config.digest:
            state += ", of another core"
    return [
        target.name,
        manifest.tool if manifest else None,
        target.part,
        target.clock_mhz,
        None if fmax is None else f"{fmax:.1f}",
        target.config.digest[:12],
        state,
    ]

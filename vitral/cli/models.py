"""A module from whatever a command was given: a `.vitral` file, or a model to compile."""

import argparse
from pathlib import Path

from vitral.cli.options import compile_options
from vitral.errors import CompileError
from vitral.runtime.module import Module

__all__ = ["load_module"]


def load_module(args: argparse.Namespace) -> Module:
    """The module of ``args.model``.

    Raises
    ------
    CompileError, ModuleError
        When it cannot be compiled or read, or options of the compiler come with a module.
    """
    options = compile_options(args)
    if Path(args.model).suffix != ".vitral":
        from vitral.compiler.pipeline import compile

        return compile(args.model, **options)
    if options:
        names = ", ".join(f"--{name.removesuffix('s').replace('_', '-')}" for name in options)
        raise CompileError(f"{args.model} is compiled already; {names} cannot change it")
    return Module.load(args.model)

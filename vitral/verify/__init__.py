"""Finds what is wrong with a program before it runs; needs numpy and no simulator."""

from vitral.verify.image import Image
from vitral.verify.module import check_folder, check_module, verify_module
from vitral.verify.program import verify_program
from vitral.verify.report import Finding, Report

__all__ = [
    "Finding",
    "Image",
    "Report",
    "check_folder",
    "check_module",
    "verify_module",
    "verify_program",
]

"""Where each row of the cases from the field is tested; `pytest -m cases` runs these files."""

__all__ = ["ROWS"]

_CONVS = ("e2e/test_cases.py", "compiler/test_import_cases.py", "test_oracle_convs.py")
_FORMS = ("e2e/test_forms.py", "compiler/test_import_cases.py", "test_oracle_forms.py")
_TABLES = ("e2e/test_case_tables.py", "compiler/test_import_tables.py")

ROWS: dict[str, tuple[str, ...]] = {
    "1 ROUND-TIE": _CONVS,
    "2 REQUANT-VEC": ("test_arithmetic.py", "hw/test_requant.py", *_CONVS),
    "3 MAC-EXTREME": (*_CONVS, *_TABLES, "compiler/test_refusals.py", "test_oracle_gemm.py"),
    "4 PAD-ZP": _CONVS,
    "6 PAD-ASYM": _CONVS,
    "7 DIL-WIDE": (*_CONVS, *_TABLES),
    "9 ALU-SEM": ("hw/test_alu.py", "sim/test_alu_meaning.py"),
    "10 KERNEL-1D": (*_CONVS, "e2e/test_forms.py"),
    "11 CH-ODD": _CONVS,
    "14 BATCH-DYN": (*_CONVS, "e2e/test_forms.py", "compiler/test_refusals.py"),
    "15 ACT-FUSE": _CONVS,
    "18 POOL": (*_TABLES, "test_oracle_pools.py"),
    "20 IMPORT-FORMS": (*_FORMS, *_TABLES, "compiler/test_refusals.py"),
    "21 GEMM-BIAS": (*_TABLES, "test_oracle_gemm.py"),
    "22 INSN-LOAD": (
        "hw/test_load_engine.py",
        "hw/test_load_stage.py",
        "sim/test_transfer_meaning.py",
    ),
    "23 AXI": ("hw/test_bursts.py", "hw/test_load_engine.py", "hw/test_registers.py"),
    "24 STATE-TOKENS": ("e2e/test_cases.py", "hw/test_tokens.py", "sim/test_broken_programs.py"),
    "25 BOARD": (
        "boards/test_de10_nano.py",
        "boards/test_cache.py",
        "boards/test_coherency.py",
        "boards/test_driver.py",
    ),
}
"""Number and name of the row to the files, below tests/."""

"""`python -m conformance` writes docs/conformance.md."""

from conformance.page import PAGE, page

PAGE.write_text(page())

"""`python -m conformance` writes docs/conformance.md and docs/operators.md."""

from conformance.operators import OPERATORS_PAGE, operators_page
from conformance.page import PAGE, page

PAGE.write_text(page())
OPERATORS_PAGE.write_text(operators_page())

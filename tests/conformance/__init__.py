"""onnx's own node tests, run through `vitral.onnx_backend`.

`scope` says by rules on a test's graph which of them Vitral must pass, `nodes` loads and runs them,
`page` writes docs/conformance.md of the results.
"""

from conformance.nodes import NodeTest, Outcome, node_tests, run
from conformance.scope import OPERATORS, out_of_scope

__all__ = ["OPERATORS", "NodeTest", "Outcome", "node_tests", "out_of_scope", "run"]

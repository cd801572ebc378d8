"""Functions from graph to graph, in the order of `vitral.compiler.pipeline`."""

"""TFLite models for the tests: a writer, networks made with it, and LiteRT's interpreter.

The writer uses the schema that comes with the interpreter, the product reads with another package.
"""

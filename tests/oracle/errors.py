"""The one error the oracle raises on a model it refuses to evaluate."""

__all__ = ["OracleError"]


class OracleError(ValueError):
    """A model, an input or a value for which the arithmetic law gives no result; one line."""

"""Bus models and helpers for tests in Amaranth's simulator."""

"""Stores of the projections; each passes `tests/conformance/projections`."""

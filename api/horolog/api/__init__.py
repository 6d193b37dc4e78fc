"""The HTTP API: what a user sends becomes a command; projections answer what a user asks."""

"""The HTTP API: what a user sends becomes a command, what the projections hold becomes an answer."""

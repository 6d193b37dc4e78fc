"""The command line: a client of the API, and the one place that wires everything."""

"""`python -m horolog.cli`."""

from horolog.cli.main import main

main()

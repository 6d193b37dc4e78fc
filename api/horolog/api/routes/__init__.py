"""The paths of the API, one module for each kind of thing they are about."""

"""Options that every command has, wherever they stand on the line.

    horolog jobs -o json        the same as        horolog -o json jobs

Everything after `--` belongs to the command that is registered, and is left alone.
"""

from collections.abc import Sequence
from typing import Final

WITH_VALUE: Final = {
    "-o": "--output",
    "--output": "--output",
    "--server": "--server",
    "--tenant": "--tenant",
    "--api-key": "--api-key",
}
FLAGS: Final = {
    "-q": "--quiet",
    "--quiet": "--quiet",
    "-v": "--verbose",
    "--verbose": "--verbose",
    "-y": "--yes",
    "--yes": "--yes",
    "--no-color": "--no-color",
}


def hoist(argv: Sequence[str]) -> list[str]:
    """The words of a command line with the options that every command has at its front."""
    common: list[str] = []
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            return [*common, *rest, word, *words]
        if word in FLAGS:
            common.append(FLAGS[word])
        elif equals and name in WITH_VALUE and name.startswith("--"):
            common += [WITH_VALUE[name], value]
        elif word in WITH_VALUE:
            # Without a value it stays last, for the parser to complain of.
            common += [WITH_VALUE[word], *[one for one in [next(words, None)] if one is not None]]
        elif word.startswith("-o") and len(word) > 2 and not word.startswith("--"):
            common += [WITH_VALUE["-o"], word[2:]]
        else:
            rest.append(word)
    return [*common, *rest]

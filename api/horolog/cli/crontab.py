"""Reads crontabs as cron does, and says line by line what cannot be carried over.

    system crontab (/etc/crontab, /etc/cron.d/*)    schedule  user  command
    user crontab   (crontab -l)                     schedule  command

A line sets a variable or names a command; variables hold for the lines below them. In a command
an unescaped `%` ends it: what follows is standard input, and each further `%` a new line there.
Nothing here reads a file or a clock.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple

_VARIABLE: Final = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z_][\w.-]*))\s*=\s*(.*)""")
_WORD: Final = re.compile(r"\S+")
_FIELDS: Final = 5
_POSIX_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"})
_CRON_D_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_ZONE_NAMES: Final = ("CRON_TZ",)
_DEFAULT_SHELL: Final = "/bin/sh"
_NAME_CHARS_MAX: Final = 48
_LINES_MAX: Final = 10_000
# What a shell line is made of beside the program it is about.
_GUARDS: Final = frozenset(
    {"test", "[", "if", "then", "fi", "else", "cd", "command", "exit", "true", "sleep", "exec",
     "nice", "ionice", "chronic", "flock", "timeout", "env", "sudo", "export", "perl", "!"}
)  # fmt: skip
_SUBSTITUTION: Final = re.compile(r"\$\([^()]*\)|`[^`]*`")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORD_SPLIT: Final = re.compile(r"&&|\|\||[;|&\n{}()]")


class Note(NamedTuple):
    """Something of a line that is not carried over, or only in another way."""

    line: int
    text: str
    lost: bool
    """Whether the line has no job."""


class Entry(NamedTuple):
    """A line that becomes a job."""

    line: int
    name: str
    cron: str
    zone: str | None
    """From CRON_TZ; None: the machine's zone."""
    user: str | None
    """From the user field; None: there is none."""
    command: str
    shell: str
    variables: Mapping[str, str]
    stdin: str | None
    jitter_minutes: int


class Crontab(NamedTuple):
    """What a file says."""

    path: str
    has_user_field: bool
    entries: tuple[Entry, ...]
    notes: tuple[Note, ...]


def is_ignored_by_cron(path: str) -> bool:
    """Whether cron itself would not read a file of this name: in cron.d only plain names count,
    so that backups of package managers are no jobs.
    """
    pure = PurePath(path)
    return pure.parent.name == "cron.d" and _CRON_D_NAME.fullmatch(pure.name) is None


def parse(
    text: str,
    path: str,
    *,
    user_field: bool | None = None,
    is_user: Callable[[str], bool] = lambda name: name == "root",
) -> Crontab:
    """Read a crontab.

    user_field: whether lines have one; None: /etc/crontab and cron.d have, others when the sixth
    word of every line is a user by `is_user`. Raises ValueError for a text that is no crontab.
    """
    lines = text.splitlines()
    if len(lines) > _LINES_MAX:
        raise ValueError(f"{path}: {len(lines)} lines, more than {_LINES_MAX}")
    has_user = _has_user_field(lines, path, is_user) if user_field is None else user_field
    reader = _Reader(path, has_user=has_user)
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    return Crontab(path, has_user, tuple(reader.entries), tuple(reader.notes))


class _Reader:
    """Goes through the lines of one file and keeps the variables set so far."""

    def __init__(self, path: str, *, has_user: bool) -> None:
        self._has_user = has_user
        self._prefix = _slug(PurePath(path).name) or "crontab"
        self._variables: dict[str, str] = {}
        self._names: set[str] = set()
        self.entries: list[Entry] = []
        self.notes: list[Note] = []

    def read(self, number: int, line: str) -> None:
        """Take one line."""
        text = line.strip()
        if not text or text.startswith("#"):
            return
        variable = _VARIABLE.fullmatch(line)
        if variable is not None:
            self._set(number, variable)
            return
        self._entry(number, text)

    def _set(self, number: int, match: re.Match[str]) -> None:
        double, single, bare, raw = match.groups()
        name = double or single or bare or ""
        value = _unquoted(raw.strip())
        if _IDENTIFIER.fullmatch(name) is None:
            text = f"{name}: no shell can hold a variable of this name"
            self.notes.append(Note(number, text, lost=False))
            return
        self._variables[name] = value
        if name == "MAILTO" and value:
            text = f"MAILTO={value}: nothing is mailed; output is kept as the run's log"
            self.notes.append(Note(number, text, lost=False))
        elif name == "TZ":
            text = f"TZ={value}: set for the commands, as cron does; it does not move the schedule"
            self.notes.append(Note(number, text, lost=False))

    def _entry(self, number: int, text: str) -> None:
        quiet = text.startswith("-")
        split = _split(text.removeprefix("-"), has_user=self._has_user)
        if split is None:
            self._lose(number, f"is no line of a crontab: {_short(text)}")
            return
        cron, user, rest = split
        if cron.lower() == "@reboot":
            self._lose(number, f"@reboot has no time, so it has no slots: {_short(rest)}")
            return
        if quiet:
            note = "the leading - (no log entry) has no meaning here"
            self.notes.append(Note(number, note, lost=False))
        command, stdin = _percent(rest)
        variables = dict(self._variables)
        shell = variables.pop("SHELL", "") or _DEFAULT_SHELL
        zone = next((variables.pop(name) for name in _ZONE_NAMES if name in variables), None)
        variables.pop("MAILTO", None)
        variables.pop("MAILFROM", None)
        delay = variables.pop("RANDOM_DELAY", "0")
        self.entries.append(
            Entry(
                line=number,
                name=self._name(command),
                cron=cron,
                zone=zone or None,
                user=user,
                command=command,
                shell=shell,
                variables=variables,
                stdin=stdin,
                jitter_minutes=int(delay) if delay.isdigit() else 0,
            )
        )

    def _lose(self, number: int, text: str) -> None:
        self.notes.append(Note(number, text, lost=True))

    def _name(self, command: str) -> str:
        """A name that the same file and command get again, whatever line they move to."""
        word = _about(command)
        name = self._prefix if word in ("", self._prefix) else f"{self._prefix}-{word}"
        name = name[:_NAME_CHARS_MAX].strip("-.")
        if name in self._names:
            digest = hashlib.sha256(command.encode()).hexdigest()
            name = f"{name}-{digest[:6]}"
        number = 2
        plain = name
        while name in self._names:
            name = f"{plain}-{number}"
            number += 1
        self._names.add(name)
        return name


def _split(text: str, *, has_user: bool) -> tuple[str, str | None, str] | None:
    """Schedule, user and command of a line; None if it is too short to have them."""
    words = 1 if text.startswith("@") else _FIELDS
    ends = [match.end() for match in _WORD.finditer(text)]
    needed = words + (1 if has_user else 0)
    if len(ends) <= needed:
        return None
    cron = " ".join(text[: ends[words - 1]].split())
    user = text[ends[words - 1] : ends[words]].strip() if has_user else None
    return cron, user, text[ends[needed - 1] :].strip()


def _percent(text: str) -> tuple[str, str | None]:
    r"""Command and standard input: the first bare % parts them, `\%` is a percent sign."""
    parts: list[str] = []
    part = ""
    at = 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] == "%":
            part += "%"
            at += 2
            continue
        if text[at] == "%":
            parts.append(part)
            part = ""
        else:
            part += text[at]
        at += 1
    parts.append(part)
    command, *stdin = parts
    return command.strip(), "\n".join(stdin) + "\n" if stdin else None


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _has_user_field(lines: list[str], path: str, is_user: Callable[[str], bool]) -> bool:
    pure = PurePath(path)
    if pure.parent.name == "cron.d" or str(pure) == "/etc/crontab":
        return True
    if "crontabs" in pure.parts:
        return False
    sixth: list[str] = []
    for line in lines:
        text = line.strip()
        if text and not text.startswith("#") and _VARIABLE.fullmatch(line) is None:
            split = _split(text, has_user=True)
            sixth.append("" if split is None or split[1] is None else split[1])
    return bool(sixth) and all(is_user(word) for word in sixth)


def _about(command: str) -> str:
    """The word that a person would call the command by: the program, or the folder of run-parts."""
    for segment in reversed(_WORD_SPLIT.split(_SUBSTITUTION.sub("", command))):
        words = [word for word in segment.split() if "=" not in word.partition("/")[0]]
        while words and (words[0] in _GUARDS or words[0].startswith(("-", ">", "<", "$"))):
            words.pop(0)
        if not words or segment.split()[0] in ("test", "[", "command", "cd", "if"):
            continue
        if PurePath(words[0]).name == "run-parts":
            folders = [word for word in words[1:] if word.startswith("/")]
            return _slug(PurePath(folders[-1]).name) if folders else "run-parts"
        return _slug(PurePath(words[0].strip("\"'")).name)
    return ""


def _slug(text: str) -> str:
    # Without dots: `hello.sh` could not be told from the job `sh` of a tenant `hello`.
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "\N{HORIZONTAL ELLIPSIS}"


def argv_of(entry: Entry) -> list[str]:
    """Program and arguments that do what cron does: the shell, in the home folder, with the
    variables of the file.
    """
    if PurePath(entry.shell).name not in _POSIX_SHELLS:
        settings = [f"{name}={value}" for name, value in entry.variables.items()]
        return ["/usr/bin/env", *settings, entry.shell, "-c", entry.command]
    lines = [f"export {name}={shlex.quote(value)}" for name, value in entry.variables.items()]
    return [entry.shell, "-c", "\n".join([*lines, 'cd "${HOME:-/}"', entry.command])]

"""Settings: one table of what there is; values from flags, environment and `horolog.toml`.

    flag > HOROLOG_NAME (nested by `__`) or HOROLOG_NAME_FILE > horolog.toml > default

A name that is not in the table is an error that gives the nearest: a setting that is misspelt and
so ignored is found out months later. Plain Python, not pydantic: each start of the CLI reads it.
"""

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

import msgspec

from horolog.api.values import duration_text, parse_duration
from horolog.schemas.errors import INVALID_SETTING, InvalidInput

PREFIX: Final = "HOROLOG_"
FILE: Final = "horolog.toml"
_FILE_SUFFIX: Final = "_FILE"
_SECRET_BYTES_MAX: Final = 64 * 1024

# What a worker sets for the programs it runs, which may call `horolog` themselves; and what the
# launcher reads.
_OTHERS: Final = frozenset(
    {
        "RUN_ID",
        "JOB_ID",
        "ATTEMPT",
        "FENCING_TOKEN",
        "SLOT",
        "IDEMPOTENCY_KEY",
        "CLAIM_ID",
        "PYTHON",
    }
)
_LEASE_BEATS_MIN: Final = 3

Value = str | int | tuple[int, ...] | tuple[str, ...]


class Setting(NamedTuple):
    """One setting: its name, default as text, how a text is read, and what it is."""

    name: str
    default: str
    read: Callable[[str], Value]
    about: str
    secret: bool = False


class Found(NamedTuple):
    """Value of a setting and where it came from."""

    setting: Setting
    text: str
    value: Value
    origin: str


def _text(text: str) -> Value:
    return text


def _whole(least: int, most: int) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ValueError(f"is no whole number from {least} to {most}")
        return int(text)

    return read


def _duration(least: str, most: str) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        value_us = parse_duration(text)
        if not parse_duration(least) <= value_us <= parse_duration(most):
            raise ValueError(f"is not from {least} to {most}")
        return value_us

    return read


def _one_of(*words: str) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        if text not in words:
            raise ValueError(f"is not one of {', '.join(words)}")
        return text

    return read


def _address(text: str) -> Value:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65_535:
        raise ValueError("is no address and port, as 127.0.0.1:8700")
    return text


def _url(*schemes: str) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        if text and text.partition("://")[0] not in schemes:
            raise ValueError(f"does not begin with {' or '.join(f'{one}://' for one in schemes)}")
        return text

    return read


def _weights(text: str) -> Value:
    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() for part in parts):
        raise ValueError("is not three whole numbers, as 70,20,10")
    weights = tuple(int(part) for part in parts)
    if min(weights) < 1 or sum(weights) != 100:
        raise ValueError("does not sum up to 100 with each at least 1")
    return weights


def _words(text: str) -> Value:
    return tuple(part.strip() for part in text.split(",") if part.strip())


SETTINGS: Final = (
    Setting("data", ".horolog", _text, "folder of everything that `horolog up` keeps"),
    Setting("log", "", _url("sqlite", "kafka"), "the log; empty: SQLite in the data folder"),
    Setting("history", "", _url("sqlite", "cassandra"), "where the views are; empty: with the log"),
    Setting("archive", "", _text, "object store for closed segments of the log; empty: none"),
    Setting("http.bind", "127.0.0.1:8700", _address, "address and port of API and console"),
    Setting("http.hosts", "", _words, "names beside localhost by which the API may be called"),
    Setting("scheduler.partitions", "2", _whole(1, 64), "ledger partitions, fixed with a new log"),
    Setting("scheduler.lookahead", "30s", _duration("1s", "10m"), "how early runs are planned"),
    Setting("lease.term", "30s", _duration("10s", "10m"), "term of leases"),
    Setting("lease.heartbeat", "10s", _duration("1s", "3m"), "time between heartbeats"),
    Setting("tiers.weights", "70,20,10", _weights, "shares of high, normal and low"),
    Setting("retention.history", "90d", _duration("1h", "36500d"), "how long runs are kept"),
    Setting("auth.mode", "none", _one_of("none", "key", "oidc"), "how callers prove who they are"),
    Setting("workers.slots", "8", _whole(0, 10_000), "runs at a time within `horolog up`"),
    Setting("schema_registry.url", "", _url("http", "https"), "registry of schemas; empty: none"),
    Setting("server", "", _url("http", "https"), "API that the CLI talks to"),
    Setting("tenant", "", _text, "tenant that the CLI means when none is named"),
    Setting("api_key", "", _text, "key that the CLI sends", secret=True),
)  # fmt: skip
_FREE: Final = ("kafka.client.",)
_BY_NAME: Final = {one.name: one for one in SETTINGS}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, read and checked."""

    data: str
    log: str
    history: str
    archive: str
    http_bind: str
    http_hosts: tuple[str, ...]
    scheduler_partitions: int
    scheduler_lookahead_us: int
    lease_term_us: int
    lease_heartbeat_us: int
    tiers_weights: tuple[int, int, int]
    retention_history_us: int
    auth_mode: str
    workers_slots: int
    schema_registry_url: str
    server: str
    tenant: str
    api_key: str
    kafka_client: dict[str, str] = {}

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Of http.bind."""
        host, _, port = self.http_bind.rpartition(":")
        return host.strip("[]"), int(port)


def load(flags: Mapping[str, str], environ: Mapping[str, str], folder: Path | None) -> Settings:
    """Settings in force. Raises InvalidInput for the first that cannot be used.

    flags: by name, those that were given. folder: where `horolog.toml` may be; None: nowhere.
    """
    found = origins(flags, environ, folder)
    free = {name: one for name, one in found.items() if name not in _BY_NAME}
    values: dict[str, object] = {}
    for name in _BY_NAME:
        field = name.replace(".", "_")
        is_duration = isinstance(found[name].value, int) and not found[name].text.isdigit()
        values[f"{field}_us" if is_duration else field] = found[name].value
    prefix = _FREE[0]
    values["kafka_client"] = {name.removeprefix(prefix): one.text for name, one in free.items()}
    made = msgspec.convert(values, Settings)
    if made.lease_term_us < _LEASE_BEATS_MIN * made.lease_heartbeat_us:
        raise InvalidInput(
            INVALID_SETTING,
            f"lease.heartbeat is {duration_text(made.lease_heartbeat_us)}: more than a third of "
            f"lease.term, {duration_text(made.lease_term_us)}; two lost heartbeats must be no harm",
        )
    return made


def origins(
    flags: Mapping[str, str], environ: Mapping[str, str], folder: Path | None
) -> dict[str, Found]:
    """Each setting with its value and where it came from, in the order of the table."""
    given: dict[str, tuple[str, str]] = {}
    for source in (_from_file(folder), _from_environ(environ), _from_flags(flags)):
        for name, text, origin in source:
            given[name] = (text, origin)
    found: dict[str, Found] = {}
    for setting in SETTINGS:
        text, origin = given.pop(setting.name, (setting.default, "default"))
        found[setting.name] = _read(setting, text, origin)
    for name, (text, origin) in given.items():
        found[name] = Found(Setting(name, "", _text, "passed on as it is"), text, text, origin)
    return found


def _read(setting: Setting, text: str, origin: str) -> Found:
    try:
        return Found(setting, text, setting.read(text), origin)
    except ValueError as error:
        shown = "***" if setting.secret else f'"{text}"'
        raise InvalidInput(
            INVALID_SETTING, f"{setting.name} is {shown} ({origin}): {error}"
        ) from error


def _from_flags(flags: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, text in flags.items():
        yield _known(name, "flag"), text, f"--{name.rpartition('.')[2]}"


def _from_environ(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for variable, text in sorted(environ.items()):
        bare = variable.removeprefix(PREFIX)
        if bare == variable or bare in _OTHERS:
            continue
        name = bare.lower().replace("__", ".")
        if bare.endswith(_FILE_SUFFIX) and name not in _BY_NAME:
            name = _known(name.removesuffix(_FILE_SUFFIX.lower()), variable)
            yield name, _content(Path(text), variable), variable
        else:
            yield _known(name, variable), text, variable


def _content(path: Path, variable: str) -> str:
    try:
        content = path.read_bytes()
        if len(content) > _SECRET_BYTES_MAX:
            raise InvalidInput(INVALID_SETTING, f"{variable}: {path} is too large for a setting")
        return content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            INVALID_SETTING, f"{variable}: {path} cannot be read: {error}"
        ) from error


def _from_file(folder: Path | None) -> Iterator[tuple[str, str, str]]:
    if folder is None or not (folder / FILE).is_file():
        return
    path = folder / FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(INVALID_SETTING, f"{path} cannot be read: {error}") from error
    for name, value in _flat(raw, ""):
        yield _known(name, str(path)), value, str(path)


def _flat(raw: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in raw.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flat(cast("Mapping[str, object]", value), f"{name}.")
        elif isinstance(value, list):
            yield name, ",".join(str(one) for one in cast("list[object]", value))
        else:
            yield name, str(value)


def _known(name: str, origin: str) -> str:
    if name in _BY_NAME or name.startswith(_FREE):
        return name
    near = difflib.get_close_matches(name, _BY_NAME, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near else "`horolog settings` lists all"
    raise InvalidInput(INVALID_SETTING, f"{origin}: there is no setting {name}; {hint}")

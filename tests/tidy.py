"""House rules that no other tool checks, each a function from a tree of files to what breaks it.

A rule sees the whole tree, since some rules are about what is missing; `test_tidy.py` runs each
on the repository and on a small bad example.
"""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

SOURCE_ROOTS = ("schemas", "streams", "projections", "workers", "api")
LINES_PER_FUNCTION_MAX = 70
LINES_PER_MODULE_MAX = 500
COLUMNS_MAX = 100

RECORDS = "schemas/horolog/schemas/records.py"
GENERATED = frozenset({RECORDS})

# Started by a person or a tool, so nothing imports them.
ENTRY_POINTS = frozenset(
    {
        "horolog.cli.__main__",
        "horolog.cli.main",
        "horolog.cli.reference",
        "horolog.api.documents",
        "horolog.schemas.error_pages",
        "horolog.schemas.generate",
        "horolog.schemas.release",
        "horolog.streams.scheduler.diagram",
    }
)
# Used by the product's tests and by its users' tests; the checks of the schemas are run by tests.
FOR_TESTS = frozenset(
    {"horolog.schemas.compat", "horolog.schemas.lint", "horolog.streams.log.memory"}
)
# The loops of a shared log, which the simulator runs and a broker's adapter will.
FOR_BROKERS = frozenset(
    {
        "horolog.streams.host.dispatching",
        "horolog.streams.host.partition",
        "horolog.workers.inbox",
    }
)


@dataclass(frozen=True)
class Finding:
    """One breach of a rule: where, and what would be right."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True)
class File:
    """A file of the tree, its path relative to the root."""

    path: str
    text: str
    is_executable: bool = False

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def is_product(self) -> bool:
        return self.path.split("/")[0] in SOURCE_ROOTS

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")

    @property
    def module(self) -> str:
        """Dotted name of a product module: `streams/horolog/streams/x.py` is horolog.streams.x."""
        parts = PurePosixPath(self.path).with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


Tree = Mapping[str, File]
Rule = Callable[[Tree], Iterator[Finding]]


def python_files(tree: Tree) -> Iterator[File]:
    return (file for file in tree.values() if file.is_python)


def product_files(tree: Tree) -> Iterator[File]:
    return (file for file in python_files(tree) if file.is_product)


def functions_are_short(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        if file.path in GENERATED:
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > LINES_PER_FUNCTION_MAX:
                    text = f"{node.name} has {count} lines, {LINES_PER_FUNCTION_MAX} at most"
                    yield Finding(file.path, node.lineno, text)


def modules_are_short(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        count = len(file.lines)
        if count > LINES_PER_MODULE_MAX and file.path not in GENERATED:
            text = f"{count} lines, {LINES_PER_MODULE_MAX} at most: split it by what it knows"
            yield Finding(file.path, count, text)


def lines_are_short(tree: Tree) -> Iterator[Finding]:
    for file in tree.values():
        if file.path in GENERATED or not file.path.endswith((".py", ".sh")):
            continue
        for number, line in enumerate(file.lines, 1):
            if len(line) > COLUMNS_MAX:
                yield Finding(file.path, number, f"{len(line)} columns, {COLUMNS_MAX} at most")


@dataclass(frozen=True)
class Ban:
    """A call that has a better one, and the files whose purpose is to make it."""

    names: str
    instead: str
    allowed: str = r"(?!)"
    within: str = "|".join(f"{root}/" for root in SOURCE_ROOTS)


BANS = (
    Ban(
        r"time\.time(_ns)?|datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today",
        "time is an argument, `now_us`; the wall clock is read in clock.py",
        allowed=r".*/clock\.py",
    ),
    Ban(
        r"random\.(?!Random$)\w+|numpy\.random\..*",
        "what must be spread is a hash of its ID; what must be secret comes from `secrets`",
    ),
    Ban(
        r"uuid\.uuid[14]",
        "an ID is derived from what it names; a secret or claim ID comes from `secrets`",
    ),
    Ban(
        r"os\.(environ|environb|getenv|putenv)(\..*)?",
        "settings are read once, in settings.py, and passed on",
        allowed=r".*/(settings|executors/command)\.py",
    ),
    Ban(
        r"print", "only the CLI prints; elsewhere a log event", allowed=r".*/(cli/.*|generate\.py)"
    ),
    Ban(
        r"time\.sleep",
        "wait for the event itself; `tests.waiting.until` where there is only a state to look at",
        allowed=r"tests/waiting\.py",
        within=r".*",
    ),
)


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Local name -> full dotted name, for everything the module imports anywhere."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """Full name of `a.b.c` as imported; a bare name that is not imported is a builtin's."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        before = dotted(node.value, names)
        return None if before is None else f"{before}.{node.attr}"
    return None


def banned_calls_are_absent(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        bans = [
            ban
            for ban in BANS
            if re.match(ban.within, file.path) and not re.fullmatch(ban.allowed, file.path)
        ]
        if not bans:
            continue
        names = imported_names(file.tree)
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Name | ast.Attribute):
                name = dotted(node, names)
                for ban in bans:
                    if name is not None and re.fullmatch(ban.names, name):
                        yield Finding(file.path, node.lineno, f"{name}: {ban.instead}")


def namespace_is_open(tree: Tree) -> Iterator[Finding]:
    for root in SOURCE_ROOTS:
        path = f"{root}/horolog/__init__.py"
        if path in tree:
            yield Finding(path, 1, "hides every other folder's part of `horolog`: remove it")


def packages_are_typed(tree: Tree) -> Iterator[Finding]:
    packages = {"/".join(file.path.split("/")[:3]) for file in product_files(tree)}
    for package in sorted(packages):
        if f"{package}/py.typed" not in tree:
            yield Finding(f"{package}/py.typed", 1, "missing: without it users see no types")


def packages_have_their_init(tree: Tree) -> Iterator[Finding]:
    folders = {
        parent
        for file in product_files(tree)
        for parent in PurePosixPath(file.path).parents
        if len(parent.parts) >= 3
    }
    for folder in sorted(folders):
        if f"{folder}/__init__.py" not in tree:
            yield Finding(f"{folder}/__init__.py", 1, "missing: without it lint-imports is blind")


MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def marks_name_an_issue(tree: Tree) -> Iterator[Finding]:
    for file in tree.values():
        # The rule and its examples have to spell the words.
        if file.path in {"tests/tidy.py", "tests/test_tidy.py"}:
            continue
        for number, line in enumerate(file.lines, 1):
            for match in MARK.finditer(line):
                text = f"{match[1]} without an issue: {match[1]}(#12) would be right"
                yield Finding(file.path, number, text)


SUPPRESSION = re.compile(
    r"#\s*(noqa\b|type:\s*ignore|pyright:\s*ignore)"
    r"(:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*|\[[\w\-, ]+\])?"
)
REASON_LENGTH_MIN = 8


def suppressions_give_a_reason(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        if file.path in {"tests/tidy.py", "tests/test_tidy.py"}:
            continue
        for number, line in enumerate(file.lines, 1):
            match = SUPPRESSION.search(line)
            if match is None:
                continue
            reason = SUPPRESSION.sub("", line[match.start() :]).strip("# -:")
            if len(reason) < REASON_LENGTH_MIN:
                yield Finding(file.path, number, f"{match[1]} without a reason after it")


def imports_of(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_are_alive(tree: Tree) -> Iterator[Finding]:
    modules = {file.module: file for file in product_files(tree)}
    # Before there is a program, nothing can be reached from it.
    if "horolog.cli.main" not in modules:
        return
    imported = {
        name for file in modules.values() for name in imports_of(file) if name != file.module
    }
    for module, file in modules.items():
        is_package = file.path.endswith("/__init__.py")
        if not is_package and module not in imported | ENTRY_POINTS | FOR_TESTS | FOR_BROKERS:
            yield Finding(file.path, 1, "nothing imports it: use it or remove it")


VAGUE = frozenset({"base", "common", "helper", "helpers", "misc", "util", "utils"})


def names_say_something(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        for part in PurePosixPath(file.path).with_suffix("").parts:
            if part in VAGUE:
                yield Finding(file.path, 1, f"`{part}` names no subject: say what it is about")
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Manager", "Helper")):
                yield Finding(file.path, node.lineno, f"{node.name}: say what it does")


def tests_name_subject_condition_outcome(tree: Tree) -> Iterator[Finding]:
    for file in python_files(tree):
        if not file.is_test:
            continue
        for node in ast.walk(file.tree):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and node.name.startswith("test_")
                and len(node.name.removeprefix("test_").split("_")) < 3
            ):
                text = f"{node.name}: test_<subject>_<condition>_<outcome>"
                yield Finding(file.path, node.lineno, text)


def schemas_have_records(tree: Tree) -> Iterator[Finding]:
    if RECORDS not in tree:
        return
    classes = {node.name for node in tree[RECORDS].tree.body if isinstance(node, ast.ClassDef)}
    for file in tree.values():
        if file.path.endswith(".avsc"):
            name = str(json.loads(file.text)["name"])
            stem = PurePosixPath(file.path).stem
            if name != stem:
                yield Finding(file.path, 1, f"holds {name}: the file is to be named after it")
            if name not in classes:
                yield Finding(file.path, 1, f"{name} has no class in {RECORDS}: `make generate`")


# Written in parts: this file is in the tree that it guards.
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("registry", "npmjs", "org"),
            ("registry", "yarnpkg", "com"),
            ("index", "crates", "io"),
            ("static", "crates", "io"),
            ("proxy", "golang", "org"),
            ("repo1", "maven", "org"),
            ("repo", "maven", "apache", "org"),
            ("deb", "debian", "org"),
        )
    )
    + "|--(extra-)?index" + "-url|--find" + "-links"
)  # fmt: skip  # the split words stay readable in a row


def registries_are_not_named(tree: Tree) -> Iterator[Finding]:
    for file in tree.values():
        for number, line in enumerate(file.lines, 1):
            if REGISTRY_HOSTS.search(line):
                text = "names a package registry: which one is the machine's business"
                yield Finding(file.path, number, text)


PINNED = re.compile(r"([a-z0-9][a-z0-9._-]*)==[^\s;]+( ;.*?)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def requirements_are_hashed(tree: Tree) -> Iterator[Finding]:
    for file in tree.values():
        if not re.fullmatch(r"requirements/\w+\.txt", file.path):
            continue
        for number, line in enumerate(file.lines, 1):
            if line.lstrip().startswith("#") or HASH.fullmatch(line):
                continue
            after = file.lines[number] if number < len(file.lines) else ""
            if not (PINNED.fullmatch(line) and HASH.fullmatch(after)):
                text = "neither a pinned version with a hash below it nor a hash: `make lock`"
                yield Finding(file.path, number, text)


def locked(tree: Tree, group: str) -> set[str]:
    """Names that requirements/<group>.txt pins."""
    file = tree.get(f"requirements/{group}.txt")
    lines = [] if file is None else file.lines
    return {match[1].replace("_", "-") for line in lines if (match := PINNED.fullmatch(line))}


def dependencies_are_locked(tree: Tree) -> Iterator[Finding]:
    file = tree.get("pyproject.toml")
    if file is None:
        return
    settings = tomllib.loads(file.text)
    groups: dict[str, list[str]] = {"runtime": settings["project"].get("dependencies", [])}
    groups |= settings.get("dependency-groups", {})
    for group, wanted in groups.items():
        for requirement in wanted:
            name = re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower()
            if re.sub(r"[._-]+", "-", name) not in locked(tree, group):
                text = f"{name} is not in requirements/{group}.txt: `make lock`"
                yield Finding(file.path, 1, text)


def programs_are_executable(tree: Tree) -> Iterator[Finding]:
    for path in ("horolog", ".ci/run"):
        if path in tree and not tree[path].is_executable:
            yield Finding(path, 1, "a program that cannot be started: chmod +x")


RULES: tuple[Rule, ...] = (
    functions_are_short,
    modules_are_short,
    lines_are_short,
    banned_calls_are_absent,
    namespace_is_open,
    packages_are_typed,
    packages_have_their_init,
    marks_name_an_issue,
    suppressions_give_a_reason,
    modules_are_alive,
    names_say_something,
    tests_name_subject_condition_outcome,
    schemas_have_records,
    registries_are_not_named,
    requirements_are_hashed,
    dependencies_are_locked,
    programs_are_executable,
)

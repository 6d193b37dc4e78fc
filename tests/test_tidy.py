"""The house rules, on the whole tree and each on an example that breaks it."""

import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests import tidy
from tests.tidy import File, Rule

ROOT = Path(__file__).resolve().parent.parent


def tree_of(files: Iterable[File]) -> dict[str, File]:
    return {file.path: file for file in files}


@cache
def repository() -> dict[str, File]:
    """Every text file that is committed or would be by `git add`."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    files: list[File] = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            text = content.decode(errors="replace")
            files.append(File(name, text, os.access(path, os.X_OK)))
    return tree_of(files)


@pytest.mark.parametrize("rule", tidy.RULES, ids=lambda rule: rule.__name__)
def test_repository_under_each_rule_has_no_finding(rule: Rule) -> None:
    findings = [str(finding) for finding in rule(repository())]
    assert not findings, "\n" + "\n".join(findings)


IN_STREAMS = "streams/horolog/streams/x.py"
HASH = "    --hash=sha256:" + "0" * 64
HOST = "pypi" + ".org"
CLI = File("api/horolog/cli/main.py", "")

BROKEN = [
    (tidy.functions_are_short, [File("bench/x.py", "def f() -> None:\n" + "    f()\n" * 70)]),
    (tidy.modules_are_short, [File("bench/x.py", "x = 1\n" * 501)]),
    (tidy.lines_are_short, [File("bench/x.py", f"x = '{'y' * 100}'\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "import time\nx = time.time()\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "from time import time_ns as t\nx = t()\n")]),
    (
        tidy.banned_calls_are_absent,
        [File(IN_STREAMS, "from datetime import UTC, datetime\nx = datetime.now(UTC)\n")],
    ),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "import random\nx = random.random()\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "from uuid import uuid4\nx = uuid4()\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "import os\nx = os.environ['A']\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "print(1)\n")]),
    (tidy.banned_calls_are_absent, [File("tests/x.py", "import time\ntime.sleep(1)\n")]),
    (tidy.namespace_is_open, [File("api/horolog/__init__.py", "")]),
    (tidy.packages_are_typed, [File(IN_STREAMS, "")]),
    (tidy.packages_have_their_init, [File(IN_STREAMS, "")]),
    (
        tidy.packages_have_their_init,
        [
            File("streams/horolog/streams/__init__.py", ""),
            File("streams/horolog/streams/host/loop.py", ""),
        ],
    ),
    (tidy.marks_name_an_issue, [File("docs/x.md", "TODO: say more\n")]),
    (tidy.suppressions_give_a_reason, [File(IN_STREAMS, "x = y  # noqa: F821\n")]),
    (tidy.suppressions_give_a_reason, [File(IN_STREAMS, "x = y  # type: ignore[name-defined]\n")]),
    (
        tidy.suppressions_give_a_reason,
        [File(IN_STREAMS, "x = y  # type: ignore[name-defined]  # noqa: F821\n")],
    ),
    (tidy.modules_are_alive, [CLI, File(IN_STREAMS, "")]),
    (tidy.modules_are_alive, [CLI, File(IN_STREAMS, "import horolog.streams.x\n")]),
    (tidy.names_say_something, [File("streams/horolog/streams/utils.py", "")]),
    (tidy.names_say_something, [File(IN_STREAMS, "class LeaseManager: ...\n")]),
    (
        tidy.tests_name_subject_condition_outcome,
        [File("tests/unit/test_x.py", "def test_lease() -> None: ...\n")],
    ),
    (
        tidy.schemas_have_records,
        [File(tidy.RECORDS, "class B: ...\n"), File("schemas/A.avsc", '{"name": "A"}')],
    ),
    (
        tidy.schemas_have_records,
        [File(tidy.RECORDS, "class A: ...\n"), File("schemas/B.avsc", '{"name": "A"}')],
    ),
    (tidy.registries_are_not_named, [File("docs/x.md", f"see https://{HOST}/project/x\n")]),
    (tidy.registries_are_not_named, [File("x.sh", "pip install --index" + "-url=x\n")]),
    (tidy.requirements_are_hashed, [File("requirements/runtime.txt", "msgspec==0.23.0\n")]),
    (tidy.requirements_are_hashed, [File("requirements/runtime.txt", f"msgspec>=0.23 \\\n{HASH}")]),
    (tidy.requirements_are_hashed, [File("requirements/runtime.txt", "msgspec==0.23.0 \\\n")]),
    (
        tidy.dependencies_are_locked,
        [
            File("pyproject.toml", '[project]\ndependencies = ["msgspec>=0.23", "ruamel.yaml"]\n'),
            File("requirements/runtime.txt", f"msgspec==0.23.0 \\\n{HASH}\n"),
        ],
    ),
    (
        tidy.dependencies_are_locked,
        [File("pyproject.toml", '[project]\n[dependency-groups]\ndev = ["mypy"]\n')],
    ),
    (tidy.programs_are_executable, [File("horolog", "#!/bin/sh\n")]),
]


@pytest.mark.parametrize(
    "rule, files", BROKEN, ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(BROKEN)]
)
def test_rule_on_a_tree_that_breaks_it_finds_one_thing(rule: Rule, files: list[File]) -> None:
    assert len(list(rule(tree_of(files)))) == 1


def test_rules_without_a_broken_example_do_not_exist() -> None:
    assert {rule for rule, _ in BROKEN} == set(tidy.RULES)


KEPT = [
    (tidy.functions_are_short, [File("bench/x.py", "def f() -> None:\n" + "    f()\n" * 69)]),
    (tidy.banned_calls_are_absent, [File("streams/x/clock.py", "import time\nx = time.time()\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "import random\nx = random.Random(1)\n")]),
    (tidy.banned_calls_are_absent, [File(IN_STREAMS, "x.environ = y.sleep(1)\n")]),
    (tidy.banned_calls_are_absent, [File("bench/x.py", "print(1)\n")]),
    (tidy.marks_name_an_issue, [File("docs/x.md", "TODO(#12): say more\n")]),
    (
        tidy.suppressions_give_a_reason,
        [File(IN_STREAMS, "x = y  # type: ignore[name-defined]  # defined by the exec above\n")],
    ),
    (
        tidy.suppressions_give_a_reason,
        [File(IN_STREAMS, "x = y  # type: ignore[a]  # noqa: F821  defined by the exec above\n")],
    ),
    (
        tidy.modules_are_alive,
        [
            CLI,
            File(IN_STREAMS, ""),
            File("api/horolog/cli/__main__.py", "from horolog.streams import x"),
        ],
    ),
    (
        tidy.requirements_are_hashed,
        [
            File(
                "requirements/runtime.txt",
                f"# why\nx==1 ; python_version > '3' \\\n{HASH} \\\n{HASH}\n",
            )
        ],
    ),
]


@pytest.mark.parametrize(
    "rule, files", KEPT, ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(KEPT)]
)
def test_rule_on_a_tree_that_keeps_it_finds_nothing(rule: Rule, files: list[File]) -> None:
    assert not list(rule(tree_of(files)))

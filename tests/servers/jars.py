"""The jars of the test servers: resolved once by Maven from `pom.xml`, then kept between runs.

They lie outside of the tree, in a folder named by what the `pom.xml` says, so a change of it is a
new folder and two checkouts share one.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

POM: Final = Path(__file__).with_name("pom.xml")
RESOLVE_MOST_S: Final = 600


class ServerMissing(Exception):
    """No server can be had on this machine; the text says what would help."""


def cache() -> Path:
    """Where jars are kept: `CACHE_FOR_TESTS` of the environment, else the user's cache."""
    given = os.environ.get("CACHE_FOR_TESTS")
    return Path(given) if given else Path.home() / ".cache" / "horolog"


def jars() -> Path:
    """The folder with the jars. Raises ServerMissing."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise ServerMissing(
                f"no `{program}` for a broker of our own; install Java 17 and Maven, "
                "or set KAFKA_FOR_TESTS to the address of a broker"
            )
    name = hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    root = cache()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"servers-{name}"
    with (root / "servers.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=root) as made:
                _resolve(Path(made) / "jars")
                (Path(made) / "jars").rename(folder)
    return folder


def _resolve(into: Path) -> None:
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", POM, "dependency:copy-dependencies", f"-DoutputDirectory={into}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=RESOLVE_MOST_S,
    )
    if done.returncode:
        raise ServerMissing(f"Maven did not bring the jars: {done.stdout[-2_000:]}")

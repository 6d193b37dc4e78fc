"""Freezes the schemas in force as those of a release: `python -m horolog.schemas.release VERSION`.

Copies every `.avsc` to `released/VERSION/` with an index of fingerprints, so that what the release
wrote is read for ever; the compatibility test holds later schemas against it.
"""

import json
import sys
from pathlib import Path

from horolog.schemas.catalog import INDEX_FILE, avro_root, read_all, texts, version_key
from horolog.schemas.model import fingerprint


def freeze(version: str, target: Path) -> int:
    """Write a release into `target/version`; the number of records. Raises FileExistsError for a
    version that was released before: a release never changes.
    """
    version_key(version)
    folder = target / version
    folder.mkdir(parents=True)
    index: dict[str, str] = {}
    for path, text in texts(avro_root()).items():
        place = folder / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for file in read_all(avro_root()):
        index[f"{fingerprint(file.record):016x}"] = f"{file.folder}/{file.name}"
    text = json.dumps(dict(sorted(index.items())), indent=1) + "\n"
    (folder / INDEX_FILE).write_text(text, encoding="utf-8")
    return len(index)


def main() -> None:
    """Freeze the version named on the command line."""
    (version,) = sys.argv[1:]
    count = freeze(version, Path(__file__).parent / "released")
    sys.stdout.write(f"{count} records of {version}\n")


if __name__ == "__main__":
    main()

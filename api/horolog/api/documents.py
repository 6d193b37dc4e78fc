"""Writes the documents that tools of others read into the docs: `python -m
horolog.api.documents [--check]`.
"""

import json
import sys
from pathlib import Path
from typing import Final

from horolog.api.app import routed
from horolog.api.definition_models import JobFile

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, str]:
    """The OpenAPI document and the JSON Schema of job files, which editors complete and check by;
    each by the name of its file.
    """
    made = {
        "openapi.json": routed().openapi(),
        "job-file.schema.json": {"$schema": _DIALECT, **JobFile.model_json_schema()},
    }
    return {
        name: json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        for name, document in made.items()
    }


def main() -> int:
    """Write the documents, or with `--check` say by the exit status whether they are current."""
    made = documents()
    if "--check" in sys.argv[1:]:
        return int(any((FOLDER / name).read_text("utf-8") != text for name, text in made.items()))
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

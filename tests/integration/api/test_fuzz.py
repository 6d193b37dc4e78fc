"""The API of a real server under requests that are drawn from its own document: right ones, and
ones that break it.

Drawn alike each time; `FUZZ_EXAMPLES` draws more of each kind.
"""

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from horolog.api.contract import ANSWERS
from tests.acceptance.server import ROOT, Server, serving
from tests.integration.api.conforming import client

DOCUMENT: Final = ROOT / "docs" / "openapi.json"
EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "12"))
ENDLESS: Final = ("get", "/v1/events")
PLACES: Final[Mapping[str, str]] = {
    "job": "default.fuzzed",
    "run": "default.fuzzed@manual-k",
    "tenant": "default",
    "code": "HRL1001",
}
"""IDs of what there is; drawn ones name nothing."""
# Its own types are generic without parameters, so that strict checking knows none of them.
FUZZER: Final = cast("Any", importlib.import_module("schemathesis"))
RULES: Final = cast("Any", importlib.import_module("schemathesis.specs.openapi.checks"))
CHECKS: Final = [
    cast("Any", importlib.import_module("schemathesis.checks")).not_a_server_error,
    RULES.status_code_conformance,
    RULES.content_type_conformance,
    RULES.response_headers_conformance,
    RULES.response_schema_conformance,
    RULES.negative_data_rejection,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a job and a run, which executes nothing by itself."""
    with serving(tmp_path_factory.mktemp("fuzz"), "--workers", "0") as running:
        with client(running.url) as http:
            http.post("/v1/jobs", json={"name": "fuzzed", "target": {"handler": "x"}})
            http.post("/v1/jobs/default.fuzzed:trigger", json={"idempotencyKey": "k"})
        yield running


def cases() -> Iterator[Any]:
    """Each route with right requests, and with wrong ones where one can be told from the document:
    it has a body, or a parameter that is more than a text.
    """
    for route in ANSWERS:
        if route == ENDLESS:
            continue
        method, path = route
        operation = document()["paths"][path][method]
        named = f"{method.upper()} {path}"
        yield pytest.param(*route, GenerationMode.POSITIVE, id=f"{named} right")
        bounded = any(
            one["in"] == "query" and one["schema"] != {"type": "string"}
            for one in operation.get("parameters", ())
        )
        if "requestBody" in operation or bounded:
            yield pytest.param(*route, GenerationMode.NEGATIVE, id=f"{named} wrong")


@cache
def document() -> dict[str, Any]:
    """The committed document."""
    return cast("dict[str, Any]", json.loads(DOCUMENT.read_text("utf-8")))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("method, path, mode", list(cases()))
def test_route_under_drawn_requests_answers_as_its_document_says(
    server: Server, method: str, path: str, mode: GenerationMode
) -> None:
    operation = FUZZER.openapi.from_dict(document())[path][method.upper()]
    fixed = {name: text for name, text in PLACES.items() if f"{{{name}}}" in path}

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(case=operation.as_strategy(mode, path_parameters=fixed or None))
    def answers(case: Any) -> None:
        if case.query and "follow" in case.query:
            # Goes on as long as the run is open.
            del case.query["follow"]
        case.headers.pop("Prefer", None)
        if mode is GenerationMode.NEGATIVE:
            # A tag that nothing has is answered before what else is wrong.
            case.headers.pop("If-Match", None)
        case.call_and_validate(base_url=server.url, checks=CHECKS, timeout=20)

    answers()

import json

from hypothesis import given

from horolog.api import definitions, json_values
from horolog.api.zone_table import ZoneTable
from horolog.schemas.records import JobDefinition
from tests.builders import definitions as build

ZONES = ZoneTable()


@given(build.definitions())
def test_definition_written_as_json_and_read_is_the_same(definition: JobDefinition) -> None:
    text = json.dumps(definitions.spec_of(definition)).encode()
    spec = definitions.read_spec(json_values.decode(text))
    assert definitions.definition_of(spec, ZONES) == definition


@given(build.definitions())
def test_definition_written_without_its_defaults_and_read_is_the_same(
    definition: JobDefinition,
) -> None:
    spec = definitions.read_spec(definitions.sparse(definitions.spec_of(definition)))
    assert definitions.definition_of(spec, ZONES) == definition

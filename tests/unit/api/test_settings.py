from pathlib import Path

import pytest

from horolog.api.settings import SETTINGS, load, origins
from horolog.schemas.errors import INVALID_SETTING, InvalidInput
from horolog.schemas.records import Target
from horolog.workers.executors.protocol import variables
from tests.builders.grants import grant

S = 1_000_000


def test_settings_where_nothing_is_given_are_the_defaults(tmp_path: Path) -> None:
    settings = load({}, {}, tmp_path)
    assert settings.host_and_port == ("127.0.0.1", 8700)
    assert settings.lease_term_us == 30 * S
    assert settings.tiers_weights == (70, 20, 10)
    assert settings.http_hosts == ()


def test_setting_given_everywhere_is_that_of_the_flag(tmp_path: Path) -> None:
    (tmp_path / "horolog.toml").write_text('data = "file"\n[http]\nbind = "127.0.0.1:1"\n')
    environ = {"HOROLOG_DATA": "environment", "HOROLOG_LEASE__TERM": "1m", "PATH": "/bin"}
    found = origins({"data": "flag"}, environ, tmp_path)
    assert (found["data"].value, found["data"].origin) == ("flag", "--data")
    assert (found["lease.term"].text, found["lease.term"].origin) == ("1m", "HOROLOG_LEASE__TERM")
    assert found["http.bind"].origin == str(tmp_path / "horolog.toml")
    assert found["log"].origin == "default"
    assert load({}, environ, tmp_path).data == "environment"
    assert load({}, {}, tmp_path).data == "file"


@pytest.mark.parametrize(
    "environ, why",
    [
        ({"HOROLOG_LEASE__TREM": "1m"}, "HOROLOG_LEASE__TREM: .* did you mean lease.term"),
        ({"HOROLOG_HTTP_BIND": "x"}, "did you mean http.bind"),
        ({"HOROLOG_LEASE__TERM": "1"}, 'lease.term is "1" .*no duration'),
        ({"HOROLOG_LEASE__TERM": "1h"}, "not from 10s to 10m"),
        ({"HOROLOG_HTTP__BIND": "8700"}, "no address"),
        ({"HOROLOG_TIERS__WEIGHTS": "50,50"}, "three whole numbers"),
        ({"HOROLOG_TIERS__WEIGHTS": "70,20,20"}, "sum up to 100"),
        ({"HOROLOG_AUTH__MODE": "off"}, "not one of none, key, oidc"),
        ({"HOROLOG_LOG": "postgres://x"}, "sqlite:// or kafka://"),
        ({"HOROLOG_LEASE__HEARTBEAT": "11s"}, "more than a third"),
        ({"HOROLOG_API_KEY_FILE": "/nowhere/at/all"}, "cannot be read"),
    ],
)
def test_setting_that_cannot_be_used_is_refused_by_name(environ: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        load({}, environ, None)
    assert refused.value.error is INVALID_SETTING


def test_secret_in_a_file_is_read_without_its_newline(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("k3y\n")
    assert load({}, {"HOROLOG_API_KEY_FILE": str(path)}, None).api_key == "k3y"


def test_variables_of_a_run_are_no_settings() -> None:
    told = variables(grant(Target(command=("horolog", "jobs"))))
    assert load({}, told, None).tenant == ""


def test_client_settings_of_kafka_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "horolog.toml").write_text('[kafka.client]\n"security.protocol" = "ssl"\n')
    assert load({}, {}, tmp_path).kafka_client == {"security.protocol": "ssl"}


def test_defaults_of_all_settings_can_be_used() -> None:
    for setting in SETTINGS:
        setting.read(setting.default)

"""Compacted topics in the log's file."""

import sqlite3
from pathlib import Path

import pytest

from horolog.schemas.errors import Corrupt, InvalidInput, Unavailable
from horolog.schemas.records import TenantId, TenantSettings
from horolog.streams.host.tenants import TenantLimits, tag_of
from horolog.streams.log.compacted import CompactedTopic
from horolog.streams.log.sqlite import SqliteLog
from horolog.streams.log.sqlite_file import FILE

ACME = TenantSettings(tenant=TenantId("acme"), concurrency=3)
OTHER = TenantSettings(tenant=TenantId("other"), jobs=5)


def topic_in(folder: Path) -> CompactedTopic[TenantSettings]:
    """A topic beside a new log."""
    SqliteLog(folder).close()
    return CompactedTopic(folder, "tenant-settings", TenantSettings)


def test_record_that_was_put_is_there_after_a_restart_and_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    topic = topic_in(tmp_path / "log")
    topic.put("other", OTHER)
    topic.put("acme", TenantSettings(tenant=TenantId("acme")))
    topic.put("acme", ACME)
    topic.close()
    log = SqliteLog(tmp_path / "log")
    log.backup(tmp_path / "copy")
    log.close()
    for folder in ("log", "copy"):
        again = CompactedTopic(tmp_path / folder, "tenant-settings", TenantSettings)
        assert list(again.all().items()) == [("acme", ACME), ("other", OTHER)]
        assert again.get("acme") == ACME
        assert again.get("nobody") is None
        again.close()


def test_topic_beside_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        CompactedTopic(tmp_path, "tenant-settings", TenantSettings)


def test_record_that_was_edited_in_the_file_is_not_believed(tmp_path: Path) -> None:
    topic = topic_in(tmp_path)
    topic.put("acme", ACME)
    with sqlite3.connect(tmp_path / FILE) as editor:
        editor.execute("UPDATE compacted SET key = 'other'")
    with pytest.raises(Corrupt, match="checksum"):
        topic.all()
    topic.close()


def test_limits_are_told_at_start_and_when_set_but_only_once_written(tmp_path: Path) -> None:
    topic_in(tmp_path).close()
    told: list[TenantSettings] = []
    limits = TenantLimits(tmp_path, told.append)
    assert told == []
    limits.put(ACME)
    assert told == [ACME]
    limits.close()
    again = TenantLimits(tmp_path, told.append)
    assert told == [ACME, ACME]
    with pytest.raises(InvalidInput, match="acme"):
        again.put(TenantSettings(tenant=TenantId("acme")), "another tag")
    assert again.of(TenantId("acme")) == ACME
    lifted = TenantSettings(tenant=TenantId("acme"))
    again.put(lifted, tag_of(ACME))
    assert again.all() == {"acme": lifted}
    again.close()

"""Rules of a zone that change while the log lives (case T46)."""

from horolog.schemas.records import RunPlanned, RunStarted, Schedule, TzdataChanged, ZoneRules
from horolog.streams.host.tzdata import read_zone
from horolog.streams.limits import HOUR_US, SECOND_US
from tests.builders.core import Core, definition, only
from tests.builders.times import us

# Before 2023 Egypt had no summer time: a zone of +02:00 all year stands for the old tables.
CAIRO = "Africa/Cairo"
OLD = read_zone("Etc/GMT-2")
NEW = read_zone("Africa/Cairo")


def core_with(rules: bytes, version: str, core: Core | None = None) -> Core:
    """A core whose host has these rules of Cairo; a given one is taken over by such a host."""

    def zones(name: str) -> ZoneRules | None:
        return ZoneRules(zone=name, effective_us=0, rules=rules if name == CAIRO else OLD)

    if core is None:
        return Core(us("2023-04-29T12:00:00Z"), zones=zones, tzdata=version)
    core.zones, core.tzdata = zones, version
    core.restart()
    return core


def test_t46_new_rules_move_the_slots_to_come_and_none_runs_twice() -> None:
    core = core_with(OLD, "2022g")
    core.create(definition(None, schedule=Schedule(cron="0 9 * * *", timezone=CAIRO)))
    core.pass_time(us("2023-04-30T12:00:00Z") - core.now_us, step_us=600 * SECOND_US)
    core_with(NEW, "2023c", core)
    changed = only(core.events, TzdataChanged)
    assert [each.version for each in changed] == ["2022g", "2023c"]
    # At Cairo's next midnight by the rules in force until then: 22:00 UTC.
    assert changed[-1].zones[0].effective_us == us("2023-04-30T22:00:00Z")
    while core.now_us < us("2023-05-02T12:00:00Z"):
        core.pass_time(HOUR_US // 4, step_us=20 * SECOND_US)
        for run in list(core.job().runs.values()):
            if run.not_before_us <= core.now_us:
                core.claim(run.run_id)
                core.complete(run.run_id)
    planned = [event.slot_us for event in only(core.events, RunPlanned)]
    assert planned[-2:] == [us("2023-05-01T06:00:00Z"), us("2023-05-02T06:00:00Z")]
    assert us("2023-05-01T07:00:00Z") not in planned
    assert len(planned) == len(set(planned))
    assert len(only(core.events, RunStarted)) >= 2


def test_owner_with_older_rules_goes_by_those_of_the_log() -> None:
    core = core_with(NEW, "2023c")
    core.create(definition(None, schedule=Schedule(cron="0 9 * * *", timezone=CAIRO)))
    core_with(OLD, "2022g", core)
    assert [each.version for each in only(core.events, TzdataChanged)] == ["2023c"]

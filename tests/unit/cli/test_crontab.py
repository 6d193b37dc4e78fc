from pathlib import Path

import pytest

from horolog.cli.crontab import Entry, argv_of, is_ignored_by_cron, parse

FOLDER = Path(__file__).parent / "crontabs"


def read(name: str) -> list[tuple[str, str, str | None]]:
    path = FOLDER / name
    table = parse(path.read_text(), f"/etc/{name}")
    assert table.has_user_field
    return [(entry.name, entry.cron, entry.user) for entry in table.entries]


def one(text: str, *, user_field: bool | None = None) -> Entry:
    (entry,) = parse(text, "/home/ann/my.tab", user_field=user_field).entries
    return entry


def test_system_crontab_in_debians_shape_gives_names_schedules_and_users() -> None:
    assert read("crontab") == [
        ("crontab-cron-hourly", "17 * * * *", "root"),
        ("crontab-cron-daily", "25 6 * * *", "root"),
        ("crontab-cron-weekly", "47 6 * * 7", "root"),
        ("crontab-cron-monthly", "52 6 1 * *", "root"),
    ]


def test_one_program_at_two_times_gives_two_names() -> None:
    names = [name for name, _, _ in read("cron.d/statistics")]
    assert names[0] == "statistics-collect"
    assert names[1].startswith("statistics-collect-")
    assert names[2] == "statistics-sessionclean"


def test_names_when_a_line_is_put_above_are_the_same() -> None:
    text = "1 1 * * * /opt/a.sh\n2 2 * * * /opt/b.sh --x\n"
    before = [entry.name for entry in parse(text, "/x/tab").entries]
    after = [entry.name for entry in parse(f"# new\n5 5 * * * /opt/c.sh\n{text}", "/x/tab").entries]
    assert after[1:] == before


def test_lines_that_cannot_be_carried_over_are_named_with_their_number() -> None:
    path = FOLDER / "cron.d/statistics"
    notes = parse(path.read_text(), "/etc/cron.d/statistics").notes
    assert [(note.line, note.lost) for note in notes] == [(2, False), (7, True)]
    assert "ops@example.org" in notes[0].text
    assert "@reboot" in notes[1].text


def test_line_too_short_to_be_one_is_named() -> None:
    (note,) = parse("* * * * *\n", "/x/tab").notes
    assert (note.line, note.lost) == (1, True)


def test_percent_ends_the_command_and_begins_standard_input() -> None:
    entry = one("0 5 * * * /bin/mail -s x ann%Hello,%%bye\n")
    assert entry.command == "/bin/mail -s x ann"
    assert entry.stdin == "Hello,\n\nbye\n"


def test_escaped_percent_is_a_percent_sign() -> None:
    (entry,) = parse((FOLDER / "cron.d/raid").read_text(), "/etc/cron.d/raid").entries
    assert "$(date +%d)" in entry.command
    assert entry.stdin is None
    assert entry.name == "raid-check"


def test_variables_hold_for_the_lines_below_them() -> None:
    text = 'A=1\n1 1 * * * x\nA = "two words" \n"B"=\'3\'\n2 2 * * * y\n'
    first, second = parse(text, "/x/tab").entries
    assert first.variables == {"A": "1"}
    assert second.variables == {"A": "two words", "B": "3"}


def test_zone_of_the_crontab_is_that_of_the_schedule_and_not_of_the_command() -> None:
    entry = one('CRON_TZ="Europe/Paris"\n0 9 * * * x\n')
    assert entry.zone == "Europe/Paris"
    assert entry.variables == {}


def test_tz_of_the_crontab_is_for_the_command_only() -> None:
    table = parse("TZ=Asia/Tokyo\n0 9 * * * x\n", "/x/tab")
    assert table.entries[0].zone is None
    assert table.entries[0].variables == {"TZ": "Asia/Tokyo"}
    assert "does not move the schedule" in table.notes[0].text


def test_random_delay_is_jitter() -> None:
    assert one("RANDOM_DELAY=45\n0 9 * * * x\n").jitter_minutes == 45


@pytest.mark.parametrize("word", ["@hourly", "@daily", "@weekly", "@monthly", "@yearly"])
def test_at_word_is_the_schedule(word: str) -> None:
    assert one(f"{word}\t/opt/x\n").cron == word


def test_user_field_where_no_path_tells_is_detected_by_known_users() -> None:
    text = "1 1 * * * root /opt/x\n2 2 * * * ann /opt/y\n"
    users = {"root", "ann"}
    assert parse(text, "/x/tab", is_user=users.__contains__).has_user_field
    assert not parse(text, "/x/tab", is_user={"root"}.__contains__).has_user_field
    spool = "/var/spool/cron/crontabs/ann"
    assert not parse(text, spool, is_user=users.__contains__).has_user_field
    assert one("1 1 * * * root /opt/x\n", user_field=False).command == "root /opt/x"


@pytest.mark.parametrize(
    "path, ignored",
    [
        ("/etc/cron.d/sysstat", False),
        ("/etc/cron.d/.placeholder", True),
        ("/etc/cron.d/x.dpkg-old", True),
        ("/etc/cron.d/x~", True),
        ("/etc/crontab", False),
        ("/home/ann/my.tab", False),
    ],
)
def test_file_that_cron_ignores_is_known(path: str, ignored: bool) -> None:
    assert is_ignored_by_cron(path) is ignored


def test_program_of_a_line_is_its_shell_in_the_home_folder_with_its_variables() -> None:
    entry = one("SHELL=/bin/bash\nA='x y'\n0 9 * * * echo $A\n")
    assert argv_of(entry) == [
        "/bin/bash",
        "-c",
        "export A='x y'\ncd \"${HOME:-/}\"\necho $A",
    ]


def test_program_of_a_line_with_another_kind_of_shell_gets_variables_from_env() -> None:
    entry = one("SHELL=/usr/bin/fish\nA=1\n0 9 * * * echo $A\n")
    assert argv_of(entry) == ["/usr/bin/env", "A=1", "/usr/bin/fish", "-c", "echo $A"]


def test_text_with_more_lines_than_a_crontab_has_is_refused() -> None:
    with pytest.raises(ValueError, match="more than"):
        parse("\n" * 10_001, "/x/tab")

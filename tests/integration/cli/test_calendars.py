"""`tocsin calendars` against a real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.integration.cli.conftest import Ran

URL = "http://127.0.0.1:1/"
HOLIDAYS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//tests//EN
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20201225
RRULE:FREQ=YEARLY
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def test_calendars_are_put_imported_named_and_deleted(cli: Callable[..., Ran], tmp_path: Path) -> None:
    put = cli(
        "calendars", "put", "shop", "--date", "2027-01-01", "--range", "2027-12-24/2027-12-26", "--weekday", "sat"
    )
    assert put.code == 0, put.err
    assert "2027-12-24 to 2027-12-26" in put.out
    file = tmp_path / "christmas.ics"
    file.write_text(HOLIDAYS)
    imported = cli("calendars", "import", file, "--from", "2027-01-01", "--json").json()
    assert imported["name"] == "christmas"
    assert imported["dates"] == [f"{year}-12-25" for year in range(2027, 2037)]
    listed = cli("calendars", "list")
    assert "christmas" in listed.out
    assert "2036-12-25" in listed.out
    made = cli(
        "schedules", "create", "standup", URL, "--cron", "0 9 * * *", "--skip", "christmas", "--skip", "shop", "--json"
    )
    assert made.json()["skip"] == ["christmas", "shop"]
    preview = cli("schedules", "preview", "standup", "--count", "9")
    assert "excluded" in preview.out
    at = made.json()["nextInstants"][0]
    assert cli("schedules", "skip", "standup", at, "--json").json()["skippedInstants"] == [at]
    assert cli("schedules", "unskip", "standup", at, "--json").json()["skippedInstants"] == []
    refused = cli("calendars", "delete", "shop")
    assert (refused.code, "standup" in refused.err) == (1, True)
    assert cli("schedules", "update", "standup", "--clear", "skip", "--json").json()["skip"] == []
    assert cli("calendars", "delete", "shop").code == 0
    cli("schedules", "delete", "standup")


def test_what_cannot_be_imported_is_refused_by_name(cli: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "bad.ics"
    file.write_bytes(b"nothing")
    refused = cli("calendars", "import", file)
    assert (refused.code, "bad.ics is no iCalendar file" in refused.err or "bad.ics can't be read" in refused.err) == (
        1,
        True,
    )
    assert cli("calendars", "import", file, "--time-zone", "Mars/Base").code == 2
    assert cli("calendars", "import", file, "--from", "tomorrow").code == 2
    assert cli("calendars", "import", tmp_path / "missing.ics").code == 1
    assert cli("calendars", "put", "x", "--range", "2027-01-01").code == 2

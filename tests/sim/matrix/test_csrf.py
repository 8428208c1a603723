"""Loads into a platform that wants a token against forgery with each call that changes something."""

from collections import defaultdict
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from mock_server.csrf import Sessions
from mock_server.scenario import CsrfSpec

from .line import MODES, Faulty, Message, Receive, Send
from .stage import ROWS, WORLD, Stage, set_up

PROFILE = """
extends = "{base}"
name = "own"
[csrf]
path = "/api/v1/{{company}}/{path}"
"""


class Watched(Faulty):
    """A line that writes down which tokens and cookies travel with which company's calls."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Note what a request shows, and what a reply gives."""
        company = parse_qs(scope["query_string"].decode()).get("_Division_", scope["path"].split("/")[3:4])[0]
        shown = dict(scope["headers"])
        if scope["method"] == "POST":
            self.shown[company].add((shown.get(b"x-csrf-token", b""), shown.get(b"cookie", b"")))
        elif b"cookie" in shown:
            self.astray.append(scope["path"])

        async def watching(message: Message) -> None:
            if message["type"] == "http.response.start":
                if b"x-csrf-token" in dict(message["headers"]) and message["status"] == 200:
                    self.given[company] += 1
                self.refused += message["status"] == 403
            await send(message)

        await super().__call__(scope, receive, watching)

    def begin(self) -> "Watched":
        """Begin with nothing seen."""
        self.shown: defaultdict[str, set[tuple[bytes, bytes]]] = defaultdict(set)
        self.given: defaultdict[str, int] = defaultdict(int)
        self.astray: list[str] = []
        self.refused = 0
        return self


def watched(
    folder: Path, mode: str, csrf: str, *, base: str = "mock-unlimited", path: str = "crm/", world: str = ""
) -> tuple[Stage, Watched]:
    """Make a mock that wants tokens, and a profile that says so."""
    stage = set_up(folder, mode, {}, WORLD + world + "[csrf]\n" + csrf)
    (folder / "own.toml").write_text(PROFILE.format(base=base, path=path))
    line = Watched(stage.app, {}).begin()
    stage.faulty = line
    return stage, line


@pytest.mark.parametrize("mode", MODES)
def test_each_company_has_a_session_of_its_own(mode: str, tmp_path: Path) -> None:
    """One token a company is asked for, and neither it nor its cookies are shown by calls of another."""
    stage, line = watched(tmp_path, mode, "")

    report = stage.push(profile=str(tmp_path / "own.toml"))

    assert (report.exit_code, report.accepted, line.refused) == (0, ROWS, 0)
    assert dict(line.given) == {"1001": 1, "1002": 1}
    assert [len(shown) for shown in line.shown.values()] == [1, 1]
    assert not line.shown["1001"] & line.shown["1002"]
    assert all(token and cookies.count(b"=") == 2 for shown in line.shown.values() for token, cookies in shown)
    assert line.astray == []


@pytest.mark.parametrize("per_company", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_a_token_that_gets_old_in_mid_run_is_renewed(mode: str, per_company: int, tmp_path: Path) -> None:
    """What was refused was not executed, and goes again with a new one: nothing in doubt, nothing twice."""
    stage, line = watched(tmp_path, mode, "lasts_calls = 2")

    report = stage.push(profile=str(tmp_path / "own.toml"), parallel=6, per_company=per_company)

    assert (report.exit_code, report.accepted) == (0, ROWS)
    assert line.refused > 0
    assert stage.adds_up(report)
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("mode", MODES)
def test_a_target_that_takes_no_token_stops_the_run_which_goes_on_when_it_does(mode: str, tmp_path: Path) -> None:
    """A fresh one is tried once; then it is said in one line, and nothing is in doubt."""
    stage, line = watched(tmp_path, mode, "lasts_s = 0")

    report = stage.push(profile=str(tmp_path / "own.toml"), parallel=1)

    assert (report.exit_code, report.unsent, report.in_doubt) == (3, ROWS, 0)
    assert "the target refuses a fresh x-csrf-token (HTTP 403: CSRF token validation failed)" in report.stopped
    assert "\n" not in report.stopped
    assert line.refused <= 2 * 2
    stage.app.world.sessions = Sessions(CsrfSpec(), seed=1)
    again = stage.resume()
    assert (again.exit_code, again.accepted) == (0, ROWS)


def test_an_address_that_gives_no_token_stops_the_run(tmp_path: Path) -> None:
    """The line names the address and the key of the profile to mend."""
    for path, said in (("nowhere", "HTTP 404; is [csrf] path right"), ("crm/", "gives no x-csrf-token; is [csrf]")):
        stage, _ = watched(tmp_path / path, "insert", "", path=path)
        stage.app.world.sessions = None if path == "crm/" else stage.app.world.sessions

        report = stage.push(profile=str(tmp_path / path / "own.toml"))

        assert (report.exit_code, report.unsent, report.in_doubt) == (3, ROWS, 0)
        assert said in report.stopped


@pytest.mark.parametrize(
    "fault", ["connection refused", "reset after the commit", "time-out before the commit", "503", "503 with a wait",
              "429 with a wait", "429 without headers", "504", "408"],
)  # fmt: skip
def test_a_question_for_a_token_that_fails_is_asked_again(fault: str, tmp_path: Path) -> None:
    """The call has not left: nothing is in doubt, and nothing is looked up."""
    stage, line = watched(tmp_path, "insert", "")
    line.faults = {("look-up", 1): fault, ("look-up", 2): fault}

    report = stage.push(profile=str(tmp_path / "own.toml"), deadline_s=100.0)

    assert line.hit == [fault, fault]
    assert (report.exit_code, report.accepted) == (0, ROWS)
    assert line.seen["look-up"] == 4
    assert line.seen["write"] == ROWS


def test_a_question_for_a_token_costs_budget(tmp_path: Path) -> None:
    """Under a minute limit that each company fills, no call comes too early, though tokens wear out."""
    stage, line = watched(
        tmp_path,
        "insert",
        "lasts_calls = 3",
        base="mock",
        world="[limits]\ncalls_per_minute = 4\ncalls_per_day = 500\n",
    )
    text = (tmp_path / "own.toml").read_text()
    limit = '[[limits]]\nname = "minute"\nscope = "company"\nkind = "fixed"\ncalls = 4\nperiod_s = 60.0\n'
    day = limit.replace("minute", "day").replace("60.0", "86400.0").replace("calls = 4", "calls = 500")
    (tmp_path / "own.toml").write_text(text + limit + day)

    report = stage.push(profile=str(tmp_path / "own.toml"))

    assert (report.exit_code, report.accepted, report.refused) == (0, ROWS, 0)
    assert sum(line.given.values()) > 2

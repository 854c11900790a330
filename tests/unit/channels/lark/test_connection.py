"""The connection before it is started; tests/integration/lark/test_connection.py connects."""

from datetime import UTC, datetime

from internal.channels.lark.connection import AppCredentials, ConnectionTimeouts, LarkConnection


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 31, 8, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


CREDENTIALS = AppCredentials("cli_1", "geheim", "https://open.feishu.cn")


def test_credentials_never_show_their_secret() -> None:
    assert "geheim" not in repr(CREDENTIALS)
    assert "cli_1" in repr(CREDENTIALS)


async def test_a_connection_that_was_not_started_stops_at_once() -> None:
    async def ignore(_: bytes) -> None:
        """Accept any event."""

    connection = LarkConnection(CREDENTIALS, ignore, FixedClock())
    assert connection.state.status == "starting"
    assert connection.state.since == "2026-01-31T08:00:00.000Z"
    await connection.stop()


def test_a_half_open_connection_is_noticed_within_30_seconds() -> None:
    timeouts = ConnectionTimeouts()
    assert timeouts.line_ping + timeouts.line_pong + timeouts.close <= 30

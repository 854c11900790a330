"""Tasks of an agent application: limits, late sweeps, and terminals beside it."""

from pathlib import Path
from typing import Any

from internal.agent.app.runs.recovery import Recovery
from internal.storage.sqlite.database import SqliteDatabase
from tests.support.agent_app import Core, make_recovery


class _Later:
    """A clock in the far future."""

    def __init__(self, here: Core) -> None:
        self._here = here

    def now(self) -> Any:
        return self._here.services.clock.now().replace(year=9000)

    def monotonic(self) -> float:
        return 0.0


def late_sweep(here: Core) -> Recovery:
    return make_recovery(here.services, _Later(here))


def beside(here: Core, home: Path) -> dict[str, str]:
    """Return the environment of a terminal on the same data folder."""
    return {
        "LARKSPUR_HOME": str(home),
        "ANTHROPIC_BASE_URL": here.model.base_url,
        "ANTHROPIC_API_KEY": "key-for-tests",
        "LARKSPUR_LLM__MODEL": "claude-x",
        "LARKSPUR_SANDBOX__PROVIDER": "native",
    }


def limit(here: Core, pages: int) -> None:
    """Limit the size of the database, as a full disk does."""
    database = here.services.database
    assert isinstance(database, SqliteDatabase)
    database._writer._connection.execute(f"pragma max_page_count = {pages}")

"""Every named statement is valid on PostgreSQL, with values of the types that stores pass."""

import asyncpg
import pytest

from internal.storage import queries
from tests.support.postgres_server import postgres_url

pytestmark = pytest.mark.postgres

TYPES = {"text", "int8", "int4", "float8", "bytea"}


async def test_every_statement_can_be_prepared() -> None:
    wrong: dict[str, str] = {}
    async with postgres_url() as url:
        connection = await asyncpg.connect(url)
        try:
            for name, sql in queries.load().items():
                try:
                    statement = await connection.prepare(sql)
                except asyncpg.PostgresError as error:
                    wrong[name] = str(error)
                    continue
                used = {each.name for each in statement.get_parameters()}
                used |= {each.type.name for each in statement.get_attributes()}
                if not used <= TYPES:
                    wrong[name] = f"other types: {used - TYPES}"
        finally:
            await connection.close()
    assert wrong == {}

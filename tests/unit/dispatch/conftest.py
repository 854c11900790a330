"""Parts of dispatchers, with a coordinator that ends runs without a model."""

from pathlib import Path

import pytest

from internal.agent.store.database import Database
from internal.agent.store.stores import Stores
from tests.support.dispatch_parts import DispatchParts


@pytest.fixture
async def parts(database: Database, stores: Stores, tmp_path: Path) -> DispatchParts:
    return DispatchParts(database, stores, tmp_path)

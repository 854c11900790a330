"""Databases that were moved away, or into which a move is not finished, are not opened."""

from internal.agent.domain.errors import StoreCorrupt


def check_move(here: str, direction: str, place: str, finished: str) -> None:
    """Check that a database can be used in spite of a move; see the table `database_moves`.

    Raises:
        StoreCorrupt: it was moved away, or a move into it is not finished.
    """
    if direction == "to":
        raise StoreCorrupt(
            f"The database {here} was moved to {place} at {finished}. Set database.url to that"
            " one. To use this one again, without what was stored there since, run larkspur db"
            " move --cancel."
        )
    if not finished:
        raise StoreCorrupt(
            f"The move from {place} into the database {here} is not finished. Continue it with"
            " larkspur db move, with the settings of the first database."
        )

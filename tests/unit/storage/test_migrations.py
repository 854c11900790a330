"""The numbered migrations."""

from internal.storage.migrations import migrations


def test_migrations_are_numbered_from_one() -> None:
    steps = migrations("sqlite")
    numbers = [step.number for step in steps]
    assert numbers == sorted(set(numbers))
    assert steps[0].number == 1
    assert steps[0].name == "initial"
    assert all(step.statements for step in steps)


def test_statements_have_no_comments_and_no_semicolon() -> None:
    statements = [sql for step in migrations("sqlite") for sql in step.statements]
    assert not [sql for sql in statements if "--" in sql or sql.endswith(";")]
    assert {sql.split()[0] for sql in statements} == {
        "alter",
        "create",
        "drop",
        "insert",
        "update",
    }


def test_an_unknown_kind_has_no_migrations() -> None:
    assert migrations("unknown") == ()

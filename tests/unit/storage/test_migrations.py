"""The numbered migrations."""

from internal.storage.migrations import migrations, newest_version


def test_the_numbers_of_migrations_increase() -> None:
    steps = migrations("sqlite")
    numbers = [step.number for step in steps]
    assert numbers == sorted(set(numbers))
    assert (steps[0].number, steps[0].name) == (1, "initial")
    assert newest_version("sqlite") == numbers[-1]
    assert all(step.statements for step in steps)


def test_both_kinds_have_the_same_numbers_after_the_first_of_postgresql() -> None:
    numbers = [step.number for step in migrations("postgres")]
    assert numbers == [step.number for step in migrations("sqlite")][-len(numbers) :]
    assert numbers[0] == 17


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

"""Refusals of model servers: one table of data per provider or server, and its reader.

Reading order: `answer` takes the status, codes and words of an error response of any shape, `table`
loads the rows of `tables/*.toml`, `classifier` finds the row of an answer, `errors` makes the error
of the agent of it. Nothing is read or compiled before the first refusal.

A row of a table is `[name]` with these fields:

    kind    the `RefusalKind`
    status  the HTTP statuses; without, those of a request that cannot be taken as it is
    code    values of the fields that a program reads (`code`, `type`, `status`), one of which is
            equal without regard to case
    text    a regular expression that is found in the words of the server, without regard to case;
            its groups `name`, `number` and `limit` are those of `Refusal`
    change  what a request has to have instead, in the terms of
            `internal/model_providers/dialect.py`

Each row has a sample answer in `tests/unit/llm/refusals/answers`. Its `source` is where the words
are from; where that is a page of documentation, the body around them was written after it.
"""

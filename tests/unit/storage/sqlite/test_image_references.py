"""Pictures in stored messages become references when a database is migrated."""

import base64
import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from internal.agent.domain.messages import Image, Message, Text
from internal.storage.sqlite.image_references import refer_to_images
from internal.storage.sqlite.schema import prepare_file
from tests.support.database_files import execute, query

CONTENT = b"\x89PNG heron"
SHA256 = hashlib.sha256(CONTENT).hexdigest()

_SUBTASK_INDEXES = (
    "tasks_of_parent",
    "runs_of_root",
    "runs_of_call",
    "runs_of_parent",
    "runs_awaiting_tasks",
)
"""Of migration 17."""
_SUBTASK_COLUMNS = (
    *(f"tasks drop column {name}" for name in ("depends_on", "reports", "reported")),
    *(
        f"runs drop column {name}"
        for name in (
            "subtask",
            "root_task_id",
            "call_group",
            "max_parallel",
            "blocked_by",
            "wait_until",
        )
    ),
)
"""Of migration 17."""
_LIST_INDEXES = (
    "usage_not_summed",
    "tasks_not_completed",
    "tasks_not_completed_of_principal",
    "tasks_not_completed_of_session",
    "questions_by_status",
    "questions_of_principal",
    "artifacts_of_type",
    "artifacts_favourite",
)
"""Of migration 22."""


def with_picture(data: str) -> str:
    picture = {"type": "image", "media_type": "image/png", "data": data}
    message = {"role": "user", "parts": [picture, {"type": "text", "text": "半角"}]}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def test_a_picture_becomes_a_reference() -> None:
    message = refer_to_images(with_picture(base64.b64encode(CONTENT).decode()))
    image = Image("image/png", SHA256, 0, 0, f"attachment:{SHA256}")
    assert msgspec.json.decode(message, type=Message) == Message("user", (image, Text("半角")))
    assert refer_to_images(message) == message


def test_a_picture_that_cannot_be_decoded_becomes_a_note() -> None:
    decoded = msgspec.json.decode(refer_to_images(with_picture("not base64")), type=Message)
    assert decoded.text == "(an image that cannot be read)半角"


@pytest.mark.parametrize("message", ["{", "[]", '{"role": "user"}', '{"parts": [{}]}', "null"])
def test_what_is_no_message_stays_as_it_is(message: str) -> None:
    assert refer_to_images(message) == message


def test_stored_messages_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "larkspur.db"
    prepare_file(path)
    old = with_picture(base64.b64encode(CONTENT * 1000).decode())
    execute(
        path,
        "delete from schema_migrations where number >= 7",
        "alter table attachment_uses drop column size",  # of migration 8
        "alter table inbox drop column attachments",  # of migration 9
        "drop index sessions_pinned_first",  # of migration 10
        "drop index sessions_of_owner_pinned_first",
        *(
            f"alter table sessions drop column {column}"
            for column in (
                "pinned",
                "archived",
                "one_shot",
                "named",
                "ended",
                "seen",
                "forked_from",  # of migration 11
                "workspace",
            )
        ),
        "drop table chat_contacts",  # of migration 30
        "drop index tasks_with_feedback",
        "alter table tasks drop column feedback",  # of migration 12
        "alter table chat_settings drop column network",  # of migration 13
        "alter table chat_settings drop column profile",  # of migration 14
        "alter table chat_settings drop column instructions",  # of migration 15
        *(f"drop index {name}" for name in _SUBTASK_INDEXES),
        *(f"drop table {name}" for name in ("task_waits", "task_dependencies")),
        *(f"alter table {column}" for column in _SUBTASK_COLUMNS),
        "drop table event_readers",  # of migration 16
        *(f"drop table {name}" for name in ("processes", "leaderships")),  # of migration 18
        "create table gateway (id bigint)",
        *(f"drop index {name}" for name in ("inbox_failed", "runs_failed_after_crashes")),
        *(
            f"alter table inbox drop column {name}"  # of migration 19
            for name in ("attempts", "next_attempt", "failure", "failed")
        ),
        *(f"drop index {name}" for name in ("runs_of_person", "runs_started_of_person")),
        *(f"alter table runs drop column {name}" for name in ("person", "max_running")),
        "drop table conversations",  # of migration 37
        "drop table history_marks",  # of migration 33
        "drop index inbox_of_chat",
        "drop index inbox_reactions",  # of migration 31
        *(f"alter table inbox drop column {name}" for name in ("reaction", "reaction_run")),
        "alter table questions drop column urged",
        "alter table inbox drop column sent",  # of migration 28
        "alter table outbox drop column sent",
        "drop table call_repairs",  # of migration 27
        "drop table model_lessons",  # of migration 26
        "drop index inbox_accepted_of_chat",  # of migration 24
        *(f"drop index {name}" for name in _LIST_INDEXES),  # of migration 22
        "drop table usage_sums",
        "alter table usage drop column summed",
        "create index usage_of_person on usage (principal, recorded)",
        *(f"alter table sessions drop column {name}" for name in ("last_task_id", "task_count")),
        *(
            f"alter table sessions drop column {name}"
            for name in ("permission_mode", "plan_review")
        ),
        "drop index sessions_of_host",  # of migration 21
        "alter table sessions drop column host",
        "alter table runs drop column told_host",
        "alter table file_removals drop column begun",
        *(f"drop table {name}" for name in ("hosts", "shared_storage", "workspace_archives")),
        *(f"drop table {name}" for name in ("events", "event_runs")),  # of migration 23
        "alter table earlier_events rename to events",
        "alter table event_log drop column pruned",  # of migration 20
        "drop table database_moves",
        "drop table database_move_tables",
        "pragma user_version = 6",
        f"insert into messages values ('s', 1, 'r', '', 'task', '{old}')",  # noqa: S608 - JSON
        f"insert into turn_log values ('r', 1, '{old}')",  # noqa: S608 - JSON
    )
    prepare_file(path)
    for table in ("messages", "turn_log"):
        ((stored,),) = query(path, f"select message from {table}")  # noqa: S608 - a table
        image, _ = msgspec.json.decode(stored, type=Message).parts
        assert isinstance(image, Image)
        assert image.sha256 == hashlib.sha256(CONTENT * 1000).hexdigest()
        assert len(stored) < 400

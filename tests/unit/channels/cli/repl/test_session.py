"""Messages, queue, restored state and status line of a session."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from internal.channels.cli.render.text import plain_text
from internal.channels.cli.repl.session import TaskChoices
from internal.channels.cli.repl.view import RequestUsage
from tests.support.repl_session import GatewaySession


def status(gateway: GatewaySession) -> tuple[str, str]:
    left, hint = gateway.session.status()
    return plain_text(left), hint


def printed(gateway: GatewaySession) -> list[str]:
    return [plain_text(row) for row in gateway.session.take_rows(60)[0]]


async def printed_until(gateway: GatewaySession, row: str) -> list[str]:
    """Return the printed rows once a row is among them."""
    rows: list[str] = []

    def is_printed() -> bool:
        rows.extend(printed(gateway))
        return row in rows

    await gateway.until(is_printed)
    return rows


def test_modes_cycle_and_an_unlisted_mode_returns_to_the_first() -> None:
    choices = TaskChoices({})
    assert [choices.next_mode() for _ in range(3)] == ["plan", "edit", "ask"]
    choices.set_mode("all")
    assert choices.next_mode() == "ask"


def test_options_hold_only_what_was_chosen() -> None:
    choices = TaskChoices({"max_cost": 1})
    assert choices.options() == {"max_cost": 1}
    choices.set_mode("plan")
    choices.allow.append("shell(ls)")
    assert choices.options() == {
        "max_cost": 1,
        "permission_mode": "plan",
        "allow": ["shell(ls)"],
    }


async def test_the_status_shows_mode_model_and_folder(gateway: GatewaySession) -> None:
    gateway.session.model, gateway.session.place = "small", "~/code"
    assert status(gateway) == ("ask · small · ~/code", "/ commands · ? help")


async def test_the_status_shows_its_chosen_parts_in_order(gateway: GatewaySession) -> None:
    session = gateway.session
    session.model, session.place = "small", "~/code"
    session.view.request, session.view.cost.dollars = RequestUsage(420, window=1_000), 0.5
    assert status(gateway)[0] == "ask · small · ~/code · context 42 % · $0.50"
    session.status_parts = ("cost", "mode")
    assert status(gateway)[0] == "$0.50 · ask"
    session.view.request = RequestUsage()
    session.status_parts = ("context",)
    assert status(gateway)[0] == ""


async def test_a_shell_command_during_another_returns_to_the_input(
    gateway: GatewaySession,
) -> None:
    gateway.session.run_shell("echo one")
    gateway.session.run_shell("echo two")
    assert gateway.restored == ["!echo two"]
    await printed_until(gateway, "  one")


async def test_a_shell_command_is_ended_also_before_its_process_exists(
    gateway: GatewaySession,
) -> None:
    gateway.session.run_shell("exec sleep 1000")
    assert gateway.session.shell.stop()
    await printed_until(gateway, "✕ stopped")
    assert not gateway.session.shell.stop()


async def test_a_shell_command_does_not_wait_for_what_it_left_behind(
    gateway: GatewaySession, tmp_path: Path
) -> None:
    gateway.session.run_shell(f"setsid sleep 1000 & echo $! > {tmp_path}/pid; echo one")
    await printed_until(gateway, "  one")
    await gateway.until(lambda: not gateway.session.shell.command)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


async def test_closing_a_session_leaves_no_shell_command(
    gateway: GatewaySession, tmp_path: Path
) -> None:
    gateway.session.run_shell(f"echo $$ > {tmp_path}/pid; echo one; exec sleep 1000")
    await printed_until(gateway, "  one")
    await gateway.session.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_hint_replaces_the_usual_one(gateway: GatewaySession) -> None:
    gateway.session.hint("press again")
    assert status(gateway)[1] == "press again"


async def test_text_sent_before_the_services_are_ready_waits(gateway: GatewaySession) -> None:
    gateway.session.send("hello")
    assert status(gateway)[0] == "starting …"
    gateway.refuse("/api/tasks", "No model.")
    gateway.connect()
    await gateway.until(lambda: bool(gateway.restored))
    assert gateway.restored == ["hello"]


async def test_refused_text_returns_to_the_input_with_the_error(gateway: GatewaySession) -> None:
    gateway.connect()
    gateway.refuse("/api/tasks", "The queue is full.")
    gateway.session.send("hello")
    rows = await printed_until(gateway, "✕ The queue is full.")
    assert gateway.restored == ["hello"]
    assert rows[0] == "> hello"


async def test_text_steers_the_running_task(gateway: GatewaySession) -> None:
    gateway.connect()
    gateway.answer("/api/tasks/task-1/steer", {"taken_as": "steering"})
    gateway.session.view.runs.expect("run-1", "task-1", "running")
    gateway.session.send("faster")
    assert await printed_until(gateway, "> faster  ↳ noted") == ["> faster  ↳ noted"]


async def test_text_is_queued_while_a_task_runs_and_can_be_taken_back(
    gateway: GatewaySession,
) -> None:
    gateway.session.view.runs.expect("run-1", "task-1", "running")
    gateway.session.queue_text("one")
    gateway.session.queue_text("two")
    assert "2 queued" in status(gateway)[0]
    assert [gateway.session.unqueue() for _ in range(3)] == ["two", "one", None]


async def test_an_unforeseen_error_is_shown_and_the_session_continues(
    gateway: GatewaySession,
) -> None:
    async def fail() -> None:
        raise ValueError("odd")

    gateway.session.start(fail())
    sentence = "Something went wrong in this session (ValueError: odd). It"
    assert f"✕ {sentence}" in await printed_until(gateway, f"✕ {sentence}")
    gateway.session.send("hello")
    assert status(gateway)[0] == "starting …"


async def test_a_stop_puts_queued_text_back_into_the_input(gateway: GatewaySession) -> None:
    gateway.session.view.runs.expect("run-1", "task-1", "running")
    gateway.session.queue_text("one")
    gateway.session.queue_text("two")
    gateway.session.stop()
    assert gateway.restored == ["one\ntwo"]
    assert "stopping" in status(gateway)[0]
    assert gateway.session.view.stopped == {"task-1"}


async def test_a_stop_without_a_task_does_nothing(gateway: GatewaySession) -> None:
    gateway.session.stop()
    assert not gateway.session.stopping


async def test_leaving_a_session_forgets_its_runs(gateway: GatewaySession) -> None:
    gateway.session.session_id = "session-1"
    gateway.session.view.runs.expect("run-1", "task-1", "running")
    gateway.session.leave_session()
    assert gateway.session.view.current is None
    assert not gateway.session.session_id


STORED = {"name": "a.txt", "media_type": "text/plain", "uri": "attachment:ab"}


async def test_a_pasted_path_becomes_a_file_that_is_sent(
    gateway: GatewaySession, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("content")
    gateway.connect()
    gateway.answer("/api/attachments", STORED)
    gateway.refuse("/api/tasks", "No model.")
    assert gateway.session.paste(str(path)) == "[a.txt] "
    gateway.session.send("read [a.txt]")
    await gateway.until(lambda: bool(gateway.restored))
    assert gateway.restored == ["read [a.txt]"]  # it can be sent again, with the file
    assert gateway.bodies[0] == b"content"


async def test_a_path_that_cannot_be_attached_stays_text_with_a_hint(
    gateway: GatewaySession, tmp_path: Path
) -> None:
    path = tmp_path / "empty.txt"
    path.touch()
    assert gateway.session.paste(str(path)) == str(path)
    assert "is empty" in status(gateway)[1]


async def test_a_stop_during_an_upload_sends_nothing(
    gateway: GatewaySession, tmp_path: Path
) -> None:
    path = tmp_path / "pipe-sized.bin"
    path.write_bytes(bytes(20_000_000))
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts, but reads nothing
        gateway.connect(f"http://127.0.0.1:{listener.getsockname()[1]}")
        gateway.session.send(f"read {gateway.session.paste(str(path))}")
        accepted, _ = await asyncio.to_thread(listener.accept)
        with accepted:
            accepted.recv(1_000)
            assert gateway.session.stop_upload()
            draining = asyncio.create_task(asyncio.to_thread(drain, accepted))
            rows = await printed_until(gateway, "✕ Sending stopped; nothing was sent.")
            await draining
    assert rows[0].startswith("> read [pipe-sized.bin]")
    assert gateway.restored == ["read [pipe-sized.bin] "]
    assert not gateway.session.stop_upload()


def drain(connection: socket.socket) -> None:
    while connection.recv(1_000_000):
        pass


async def test_a_picture_of_the_clipboard_is_inserted(
    gateway: GatewaySession, clipboard: Callable[[str], None]
) -> None:
    clipboard("printf '\\211PNG\\r\\n\\032\\nrest'")
    inserted: list[str] = []

    def insert(text: str) -> None:
        inserted.append(text)
        gateway.notify()

    gateway.session.insert_text = insert
    gateway.session.paste_picture()
    await gateway.until(lambda: bool(inserted))
    assert inserted == ["[picture-1.png] "]


async def test_a_clipboard_without_a_picture_is_told(
    gateway: GatewaySession, clipboard: Callable[[str], None]
) -> None:
    clipboard("exit 1")
    gateway.session.paste_picture()
    row = "· The clipboard contains no picture."
    assert row in await printed_until(gateway, row)

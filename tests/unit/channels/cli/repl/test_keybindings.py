"""Key bindings in a prompt_toolkit application that reads from a pipe."""

from collections.abc import AsyncGenerator

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import DummyOutput

from internal.agent.app.background_task import background_task
from internal.channels.cli.exit_codes import INTERRUPTED, OK
from internal.channels.cli.render.text import plain_text
from internal.channels.cli.repl.keybindings import KeyActions, KeyHandlers
from internal.channels.cli.repl.prompt import Prompt
from tests.support.repl_session import GatewaySession


class Keyboard:
    """A session's key bindings with a record of their effects."""

    def __init__(self, gateway: GatewaySession, pipe: PipeInput) -> None:
        self.gateway, self.session = gateway, gateway.session
        self.box = Buffer(
            multiline=True,
            history=InMemoryHistory(["older"]),
            on_text_changed=lambda _box: gateway.notify(),
        )
        self.commands: list[str] = []
        self.exits: list[int] = []
        self.prompt = Prompt(self.session, self.box)
        self.handlers = KeyHandlers(
            KeyActions(self.session, self.prompt, self.box, self._command, self._exit, self._exit)
        )
        self.send = pipe.send_text
        self.app: Application[None] = Application(
            Layout(Window(BufferControl(self.box))),
            key_bindings=self.handlers.bindings(),
            input=pipe,
            output=DummyOutput(),
        )
        self.app.ttimeoutlen = self.app.timeoutlen = 0.05

    async def type(self, keys: str) -> None:
        """Press keys, then one that marks their end."""
        self.send(f"{keys}\x1b[200~|\x1b[201~")
        await self.gateway.until(lambda: "|" in self.box.text)
        self.box.delete_before_cursor()

    def _command(self, text: str) -> None:
        self.commands.append(text)
        self.gateway.notify()

    def _exit(self, code: int) -> None:
        self.exits.append(code)
        self.gateway.notify()


@pytest.fixture
async def keyboard(gateway: GatewaySession) -> AsyncGenerator[Keyboard]:
    with create_pipe_input() as pipe:
        made = Keyboard(gateway, pipe)
        async with background_task(made.app.run_async()):
            yield made


def hint(keyboard: Keyboard) -> str:
    return keyboard.session.status()[1]


async def test_enter_sends_and_ctrl_j_breaks_the_line(keyboard: Keyboard) -> None:
    await keyboard.type("one\ntwo\r")
    assert plain_text(keyboard.session.status()[0]) == "starting …"
    assert keyboard.box.text == ""
    assert keyboard.box.history.get_strings()[-1] == "one\ntwo"


async def test_a_slash_command_is_run_and_not_sent(keyboard: Keyboard) -> None:
    await keyboard.type("/model small\r")
    await keyboard.type("?")
    assert keyboard.commands == ["/model small", "/help"]
    assert plain_text(keyboard.session.status()[0]) == "ask"


async def test_a_question_mark_in_a_text_is_a_character(keyboard: Keyboard) -> None:
    await keyboard.type("why?")
    assert (keyboard.box.text, keyboard.commands) == ("why?", [])


async def test_tab_queues_while_a_task_runs_and_up_takes_it_back(keyboard: Keyboard) -> None:
    keyboard.session.view.runs.expect("run-1", "task-1", "running")
    await keyboard.type("next\t")
    assert list(keyboard.session.queue) == ["next"]
    await keyboard.type("\x1b[A")
    assert keyboard.box.text == "next"
    assert not keyboard.session.queue


async def test_up_recalls_the_history_when_nothing_is_queued(keyboard: Keyboard) -> None:
    await keyboard.type("\x1b[A")
    assert keyboard.box.text == "older"


async def test_shift_tab_changes_the_mode(keyboard: Keyboard) -> None:
    await keyboard.type("\x1b[Z")
    assert keyboard.session.choices.mode == "plan"


async def test_ctrl_c_clears_the_input_then_quits_on_the_second_press(keyboard: Keyboard) -> None:
    await keyboard.type("text\x03")
    assert (keyboard.box.text, keyboard.exits) == ("", [])
    keyboard.handlers.interrupt()
    assert hint(keyboard) == "Press Ctrl+C again to quit"
    keyboard.handlers.interrupt()
    assert keyboard.exits == [INTERRUPTED]


async def test_ctrl_c_stops_a_task_before_it_quits(keyboard: Keyboard) -> None:
    keyboard.session.view.runs.expect("run-1", "task-1", "running")
    keyboard.handlers.interrupt()
    assert keyboard.session.stopping
    assert keyboard.exits == []
    keyboard.handlers.interrupt()
    assert keyboard.exits == [INTERRUPTED]


async def test_a_press_that_came_too_late_to_stop_does_not_quit(keyboard: Keyboard) -> None:
    keyboard.session.view.runs.expect("run-1", "task-1", "running")
    keyboard.handlers.interrupt()
    keyboard.session.view.reset()  # the task ended in between
    keyboard.handlers.interrupt()
    assert keyboard.exits == []
    assert hint(keyboard) == "Press Ctrl+C again to quit"


async def test_ctrl_d_quits_but_asks_again_while_a_task_runs(keyboard: Keyboard) -> None:
    keyboard.session.view.runs.expect("run-1", "task-1", "running")
    await keyboard.type("\x04")
    assert keyboard.exits == []
    assert hint(keyboard).startswith("A task is running")
    await keyboard.type("\x04")
    assert keyboard.exits == [OK]


async def test_escape_stops_the_task(keyboard: Keyboard) -> None:
    keyboard.session.view.runs.expect("run-1", "task-1", "running")
    keyboard.send("\x1b")
    await keyboard.gateway.until(lambda: keyboard.session.stopping)


async def test_a_long_paste_becomes_a_placeholder(keyboard: Keyboard) -> None:
    await keyboard.type(f"see \x1b[200~{'x' * 900}\x1b[201~")
    assert keyboard.box.text == "see [pasted 1: 1 lines]"


async def test_ctrl_o_prints_the_last_output_without_controls(keyboard: Keyboard) -> None:
    await keyboard.type("\x0f")
    assert hint(keyboard) == "There are no thoughts and no tool output yet."
    keyboard.session.view.output = ("shell", "one\n\x1b[2Jtwo\n")
    await keyboard.type("\x0f")
    rows = [plain_text(row) for row in keyboard.session.take_rows(60)[0]]
    assert rows == ["· full output of shell", "one", r"\u001b[2Jtwo"]
    keyboard.session.view.thoughts = "First I look."
    await keyboard.type("\x0f")
    rows = [plain_text(row) for row in keyboard.session.take_rows(60)[0]]
    assert rows[-2:] == ["· thoughts before the last reply", "First I look."]


async def test_a_letter_answers_a_question_only_while_it_is_alone(keyboard: Keyboard) -> None:
    call = {"call_id": "c", "tool": "shell", "what": "rm x", "risk": "exec", "reason": "r"}
    view = {"question_id": "question-1", "run_id": "run-1", "kind": "approval", "calls": [call]}
    keyboard.session.view.open_question(view)
    keyboard.prompt.panel(60, 20)
    await keyboard.gateway.until(lambda: keyboard.prompt.accepts_key("y"))
    await keyboard.type("yet")
    assert keyboard.box.text == "yet"
    assert keyboard.prompt.question is not None
    keyboard.box.reset()
    keyboard.send("n")
    await keyboard.gateway.until(lambda: keyboard.prompt.question is None)
    assert keyboard.box.text == ""

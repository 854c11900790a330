"""Key bindings. Editing itself is left to prompt_toolkit."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from internal.channels.cli.exit_codes import INTERRUPTED, OK
from internal.channels.cli.open_question import OpenQuestion
from internal.channels.cli.render.text import StyledLine, sanitize
from internal.channels.cli.repl.history import MAX_ENTRY_LENGTH
from internal.channels.cli.repl.prompt import Prompt
from internal.channels.cli.repl.session import HINT_SECONDS, ReplSession

_ANSWER_KEYS = "yapne123456789"
SINGLE_KEY_SECONDS = 0.25
"""A letter answers once it has been alone in the input this long; otherwise it starts a word."""


class KeyActions(NamedTuple):
    """Targets of keys. `command` runs a slash command; `leave` and `exit_now` get an exit code."""

    session: ReplSession
    prompt: Prompt
    box: Buffer
    command: Callable[[str], None]
    leave: Callable[[int], None]
    exit_now: Callable[[int], None]


class KeyHandlers:
    """Handlers of all keys. Ctrl+C and SIGINT share one handler."""

    def __init__(self, actions: KeyActions) -> None:
        self._session = actions.session
        self._prompt = actions.prompt
        self._box = actions.box
        self._actions = actions
        self._interrupted = self._quit_requested = -HINT_SECONDS
        self._idle = True
        self._escaped = -HINT_SECONDS
        self._replaces = False
        self._box.on_text_changed += self._note_text
        self.is_editor_open = False
        """True while an editor uses the terminal."""

    def bindings(self) -> KeyBindings:
        """Return the bindings."""
        keys = KeyBindings()
        editing = ~is_searching
        empty = Condition(lambda: not self._box.text)
        has_task = Condition(lambda: self._session.has_task)
        # while a menu entry is selected, Enter inserts it and Esc closes the menu
        menu = Condition(lambda: self._box.complete_state is not None)
        chosen = Condition(
            lambda: (
                (state := self._box.complete_state) is not None
                and state.current_completion is not None
            )
        )
        for names, handler, when in (
            (("enter",), self._send, editing & ~chosen),
            (("enter",), self._choose, editing & chosen),
            (("c-j",), self._break_line, editing),
            (("escape", "enter"), self._break_line, editing),
            (("tab",), self._complete, editing),
            (("up",), self._up, editing & empty),
            (("c-c",), lambda _event: self.interrupt(), editing),
            (("escape",), self._escape, editing & ~menu),
            (("escape",), self._close_menu, editing & menu),
            (("c-d",), lambda _event: self.end(), editing & empty),
            (("s-tab",), self._next_mode, editing & ~menu),
            (("c-o",), self._show_output, editing),
            (("c-b",), lambda _event: self._session.move_to_background(), editing & has_task),
            (("c-g",), lambda _event: self._edit(), editing),
            (("c-v",), lambda _event: self._session.paste_picture(), editing),
            (("c-z",), lambda _event: self.suspend(), editing),
            (("?",), lambda _event: self._actions.command("/help"), editing & empty),
        ):
            keys.add(*names, filter=when)(handler)
        for key in _ANSWER_KEYS:
            accepted = Condition(partial(self._prompt.accepts_key, key))
            keys.add(key, filter=editing & empty & accepted)(self._begin_decision)
        keys.add(Keys.BracketedPaste)(self._paste)
        return keys

    def interrupt(self) -> None:
        """Clear the input, else stop the task, else quit on the second press."""
        if self._prompt.discard_draft() or self._session.stop_upload():
            return
        if not self._box.text and self._session.shell.stop():
            return
        now, session = time.monotonic(), self._session
        idle = session.view.runs.stoppable is None
        # twice in the same state: a press that came too late to stop does not quit
        again = self._idle is idle and now - self._interrupted < HINT_SECONDS
        if self._box.text:
            self._clear()
            return
        self._interrupted, self._idle = now, idle
        if not again:
            if not idle:
                session.stop()
            ends = self._session.ending_tasks()
            session.hint(
                (ends or session.messages("again_quit"))
                if idle
                else session.messages("again_leave")
            )
        elif idle:
            self._actions.leave(INTERRUPTED)
        else:
            self._actions.exit_now(INTERRUPTED)

    def end(self) -> None:
        """Quit; while a task runs only on the second press."""
        now, session = time.monotonic(), self._session
        again, self._quit_requested = now - self._quit_requested < HINT_SECONDS, now
        ends = session.ending_tasks()
        if again or (session.view.current is None and not ends):
            self._actions.leave(OK)
        else:
            session.hint(ends or session.messages("quit_running"))

    def suspend(self) -> None:
        """Suspend to the shell until `fg`."""
        if self.is_editor_open:
            _stop_here()  # the editor has stopped itself; the shell waits for the whole job
        else:
            run_in_terminal(_stop_here)

    def _edit(self) -> None:
        self.is_editor_open = True
        self._box.open_in_editor().add_done_callback(lambda _task: self._edited())

    def _edited(self) -> None:
        self.is_editor_open = False

    def _send(self, _event: KeyPressEvent) -> None:
        if self._prompt.is_picking:
            first = next(iter(self._prompt.offered()), None)
            if first is not None:
                self._box.apply_completion(first)
        text = self._box.text
        if self._box.document.text_before_cursor.endswith("\\"):
            self._box.delete_before_cursor()
            self._box.insert_text("\n")
            return
        if not text.strip():
            self._prompt.confirm()
            return
        self._submit(text)

    def _submit(self, text: str) -> None:
        """Send an input, or run it as a slash command or as a shell command."""
        is_drafting = self._prompt.is_drafting
        if not is_drafting:
            self._remember(text)
        replaces = self._replaces
        self._clear()
        if text.startswith("/") and "\n" not in text.strip() and not is_drafting:
            self._actions.command(text.strip())
        elif text.startswith("!") and text[1:].strip() and not is_drafting:
            self._session.run_shell(text[1:].strip())
        elif not self._prompt.submit(text):
            self._session.send(text.strip("\n"), edits=replaces)

    def _clear(self) -> None:
        self._box.reset()
        self._replaces = False

    def _note_text(self, box: Buffer) -> None:
        """Forget that the input replaces the last message once it was emptied."""
        self._replaces = self._replaces and bool(box.text)

    def _remember(self, text: str) -> None:
        """Add an input to the history, with the pasted texts instead of their placeholders."""
        whole = self._session.pastes.expand(text)
        history = self._box.history
        if len(whole) <= MAX_ENTRY_LENGTH:
            text = whole
        if text not in history.get_strings()[-1:]:
            history.append_string(text)

    def _begin_decision(self, event: KeyPressEvent) -> None:
        question = self._prompt.question
        if question is not None and not question.is_final_key(event.data):
            self._prompt.press(event.data)
            return
        self._box.insert_text(event.data)
        loop = asyncio.get_running_loop()
        loop.call_later(SINGLE_KEY_SECONDS, self._decide, event.data, question)

    def _decide(self, key: str, question: OpenQuestion | None) -> None:
        if (
            self._box.text == key
            and self._prompt.question is question
            and self._prompt.accepts_key(key)
        ):
            self._box.reset()
            self._prompt.press(key)

    def _choose(self, _event: KeyPressEvent) -> None:
        state = self._box.complete_state
        if state is not None and state.current_completion is not None:
            picking = self._prompt.is_picking
            self._box.apply_completion(state.current_completion)
            if picking:
                self._submit(self._box.text)

    def _break_line(self, _event: KeyPressEvent) -> None:
        self._box.insert_text("\n")

    def _complete(self, _event: KeyPressEvent) -> None:
        box, session = self._box, self._session
        if box.complete_state is not None:
            box.complete_next()
        elif self._queues() and box.text.strip():
            text = box.text
            self._remember(text)
            self._clear()
            session.queue_text(text.strip("\n"))
        else:
            box.start_completion(insert_common_part=True)

    def _queues(self) -> bool:
        """Return True if Tab queues the text instead of completing it."""
        has_question = self._prompt.question is not None and not self._prompt.is_drafting
        return has_question or self._session.view.current is not None

    def _up(self, _event: KeyPressEvent) -> None:
        text = self._session.unqueue()
        if text is None:
            self._box.auto_up()
        else:
            self._box.insert_text(text)

    def _escape(self, _event: KeyPressEvent) -> None:
        if self._prompt.discard_draft():
            return
        session, now = self._session, time.monotonic()
        again, self._escaped = now - self._escaped < HINT_SECONDS, now
        if self._replaces:
            self._replaces, self._escaped = False, -HINT_SECONDS
            session.hint(session.messages("edit_given_up"))
        elif session.view.runs.stoppable is not None or self._box.text:
            self._escaped = -HINT_SECONDS
        elif again and session.last_sent:
            self._escaped = -HINT_SECONDS  # the next one is the first of another pair
            self._box.insert_text(session.last_sent)
            self._replaces = bool(session.last_run)
            if self._replaces:
                session.hint(session.messages("edits_last"))
        session.stop()

    def _close_menu(self, _event: KeyPressEvent) -> None:
        self._box.cancel_completion()

    def _next_mode(self, _event: KeyPressEvent) -> None:
        self._session.choices.next_mode()
        self._session.redraw()

    def _show_output(self, _event: KeyPressEvent) -> None:
        session = self._session
        if lines := self._prompt.question_lines():
            session.note(*lines)
            return
        view, folded = session.view, list[tuple[str, str]]()
        if view.output is not None:
            tool, output = view.output
            folded.append((session.messages("output_of", tool=tool), output))
        if view.thoughts:
            folded.append((session.messages("thoughts"), view.thoughts))
        if not folded:
            session.hint(session.messages("no_output"))
        for title, text in folded:
            rows = sanitize(text).rstrip("\n").split("\n")
            bodies = [StyledLine((("", row),) if row else (), verbatim=True) for row in rows]
            session.note(view.rows.note(title), *bodies)

    def _paste(self, event: KeyPressEvent) -> None:
        self._box.insert_text(self._session.paste(event.data))


def _stop_here() -> None:
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(
            0, signal.SIGTSTP
        )  # the whole job, as the terminal does: also a pager in the pipeline
    finally:
        signal.signal(signal.SIGTSTP, before)

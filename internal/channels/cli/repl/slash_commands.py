"""The commands behind a slash: one line of the roster each."""

import difflib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from internal.channels.cli.client import SessionItem
from internal.channels.cli.exit_codes import OK
from internal.channels.cli.render.event_rows import align_columns, format_cost, format_tokens
from internal.channels.cli.render.text import StyledLine, truncate_line
from internal.channels.cli.render.theme import THEMES
from internal.channels.cli.render.transcript import transcript_markdown
from internal.channels.cli.repl.id_lookup import find_id
from internal.channels.cli.repl.permission_commands import LISTED, MODES, TITLE, Permitting
from internal.channels.cli.repl.session import ReplSession

CommandCoroutine = Coroutine[Any, Any, None]


@dataclass(frozen=True)
class SlashCommand:
    """A command: its name, what may stand behind it, the word of its meaning, and what it does."""

    name: str
    takes: str
    meaning: str
    run: Callable[["SlashCommands", str], CommandCoroutine]


class SlashCommands(Permitting):
    """Runs what is written behind a slash. `wear` changes the theme, `leave` ends the session."""

    def __init__(
        self,
        session: ReplSession,
        folder: Path,
        wear: Callable[[str], None],
        leave: Callable[[int], None],
    ) -> None:
        self.theme = next(iter(THEMES))
        super().__init__(session)
        self._folder = folder
        self._wear = wear
        self._leave = leave
        self.sessions: Sequence[SessionItem] = ()

    def menu(self) -> Mapping[str, str]:
        """Return every name with its meaning, the other names behind the plain ones."""
        words = self.session.words
        plain = {one.name: getattr(words, one.meaning) for one in SLASH_COMMANDS}
        others = {
            alias: getattr(words, one.meaning)
            for one in SLASH_COMMANDS
            for alias in words.aliases.get(one.name, "").split()
        }
        return {**plain, **others}

    def values(self, name: str) -> Sequence[tuple[str, str]]:
        """Return what may stand behind a command, as far as it is known."""
        match self._plain(name):
            case "resume":
                return [(one.session_id, one.title) for one in self.sessions]
            case "permissions":
                return [(mode, "") for mode in (*MODES, "allow ", "deny ", "remove ")]
            case "plan":
                return [("on", ""), ("off", "")]
            case "answer":
                return [(one, "") for one in self.session.view.questions]
            case "theme":
                return [(theme, "") for theme in THEMES]
            case _:
                return ()

    def run(self, line: str) -> None:
        """Begin a command."""
        self.session.begin(self._run(line))

    async def learn(self) -> None:
        """Learn what the menu offers."""
        client = (await self.session.ready()).client
        self.sessions = await client.sessions()

    async def _run(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        command = next((one for one in SLASH_COMMANDS if one.name == self._plain(name)), None)
        if command is None:
            self.say(self._unknown(name))
            return
        await command.run(self, rest.strip())

    def _plain(self, name: str) -> str:
        aliases = self.session.words.aliases
        return next((one for one, known in aliases.items() if name in known.split()), name.lower())

    def _unknown(self, name: str) -> str:
        words, shown = self.session.words, f"/{truncate_line(name, TITLE)}"
        near = difflib.get_close_matches(name[:TITLE].lower(), list(self.menu()), n=1, cutoff=0.4)
        if not near:
            return words.say("unknown", name=shown)
        return words.say("nearest", name=shown, near=f"/{near[0]}")

    async def help(self, _rest: str) -> None:
        """Say what can be done here."""
        words = self.session.words
        faint = self.session.view.rows.faint
        listed = [
            (f"/{one.name} {one.takes}".rstrip(), getattr(words, one.meaning))
            for one in SLASH_COMMANDS
        ]
        keys = [faint(line) for line in words.keys.strip().splitlines()]
        self.session.note(*align_columns(listed), StyledLine(()), *keys)

    async def new(self, _rest: str) -> None:
        """Begin a new session."""
        if self._busy():
            return
        self.session.leave_session()
        self.say(self.session.words.new_session)

    async def resume(self, rest: str) -> None:
        """Go on with a session, or list them."""
        session, words = self.session, self.session.words
        await self.learn()
        others = [one for one in self.sessions if one.session_id != session.session_id]
        if not others:
            self.say(words.no_sessions)
        elif not rest:
            self.list([one.shown for one in others[:LISTED]])
        elif not self._busy():
            found = find_id(rest, [one.session_id for one in others])
            title = next(one.title for one in others if one.session_id == found)
            await session.open(found)
            self.say(words.say("resumed", title=truncate_line(title, TITLE) or found))

    async def rename(self, rest: str) -> None:
        """Give the session a title."""
        session, words = self.session, self.session.words
        title = truncate_line(rest, 200)
        if not title:
            self.say(words.say("usage", usage="/rename TITLE"))
        elif session.session_id is None:
            self.say(words.no_session_yet)
        else:
            await (await session.ready()).client.rename(session.session_id, title)
            self.say(words.say("renamed", title=title))

    async def model(self, rest: str) -> None:
        """Show or choose the model."""
        session, words = self.session, self.session.words
        if not rest:
            self.say(words.say("model_is", model=session.model))
            return
        session.choices.model = session.model = truncate_line(rest, TITLE)
        self.say(words.say("model_next", model=session.model))

    async def profile(self, rest: str) -> None:
        """Show or choose the profile."""
        session, words = self.session, self.session.words
        about = await (await session.ready()).client.about()
        known = ", ".join(about.profiles)
        if rest and rest in about.profiles:
            session.choices.profile = rest
            self.say(words.say("profile_next", profile=rest))
        else:
            chosen = session.choices.profile or about.profile
            self.say(words.say("profile_is", profile=chosen, known=known))

    async def tools(self, _rest: str) -> None:
        """List the tools."""
        services = await self.session.ready()
        self.list([(one.name, one.risk, one.meaning) for one in services.tools()])

    async def tasks(self, _rest: str) -> None:
        """List the newest tasks."""
        found = await (await self.session.ready()).client.tasks(limit=LISTED)
        if not found:
            self.say(self.session.words.no_tasks)
            return
        self.list([one.shown for one in found])

    async def cost(self, _rest: str) -> None:
        """Say what this session cost."""
        session, words = self.session, self.session.words
        if session.session_id is None:
            self.say(words.no_session_yet)
            return
        found = await (await session.ready()).client.costs("session", session.session_id)
        known = [one.cost for one in found if one.cost is not None]
        self.say(
            words.say(
                "cost_session",
                cost=format_cost(sum(known)) if known else words.cost_unknown,
                input=format_tokens(sum(one.input_tokens for one in found)),
                output=format_tokens(sum(one.output_tokens for one in found)),
            )
        )

    async def export(self, rest: str) -> None:
        """Write the session to a file."""
        session, words = self.session, self.session.words
        if session.session_id is None:
            self.say(words.no_session_yet)
            return
        client = (await session.ready()).client
        text = transcript_markdown(await client.transcript(session.session_id), session.session_id)
        path = self._folder / (rest or f"{session.session_id}.md")
        try:
            with path.expanduser().open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.say(words.say("export_failed", reason=f"{error.strerror}: {path}"))
        else:
            self.say(words.say("exported", path=str(path)))

    async def change_theme(self, rest: str) -> None:
        """Show or choose the theme."""
        if rest in THEMES:
            self.theme = rest
            self._wear(rest)
        known = ", ".join(THEMES)
        self.say(self.session.words.say("theme_is", theme=self.theme, known=known))

    async def doctor(self, _rest: str) -> None:
        """Check whether everything is there."""
        services = await self.session.ready()
        self.say(*services.doctor())

    async def quit(self, _rest: str) -> None:
        """Leave."""
        self._leave(OK)

    def _busy(self) -> bool:
        busy = self.session.view.current is not None
        if busy:
            self.say(self.session.words.busy)
        return busy


SLASH_COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("help", "", "help", SlashCommands.help),
    SlashCommand("new", "", "new", SlashCommands.new),
    SlashCommand("resume", "[ID]", "resume", SlashCommands.resume),
    SlashCommand("rename", "TITLE", "rename", SlashCommands.rename),
    SlashCommand("plan", "[on|off]", "show_plan", SlashCommands.plan),
    SlashCommand(
        "permissions", "[MODE|allow|deny|remove]", "permissions", SlashCommands.permissions
    ),
    SlashCommand("model", "[NAME]", "model", SlashCommands.model),
    SlashCommand("profile", "[NAME]", "profile", SlashCommands.profile),
    SlashCommand("tools", "", "tools", SlashCommands.tools),
    SlashCommand("tasks", "", "tasks", SlashCommands.tasks),
    SlashCommand("questions", "", "questions", SlashCommands.questions),
    SlashCommand("answer", "ID yes|no|TEXT", "answer", SlashCommands.answer),
    SlashCommand("cost", "", "cost", SlashCommands.cost),
    SlashCommand("export", "[FILE]", "export", SlashCommands.export),
    SlashCommand("theme", "[NAME]", "theme", SlashCommands.change_theme),
    SlashCommand("doctor", "", "doctor", SlashCommands.doctor),
    SlashCommand("quit", "", "quit", SlashCommands.quit),
)
"""Every command. A new one is a line here, a word for its meaning, and its Chinese names."""

"""The slash commands of the terminal: the shared and the terminal-specific ones.

A terminal-specific command is a handler function, one entry of `SLASH_COMMANDS`, and the section
with its texts in the table `terminal` of `internal/i18n/commands.json`.
"""

import difflib
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from internal.agent.domain.permissions.modes import EARLIER_NAMES, Mode
from internal.channels.cli.client import GatewayError
from internal.channels.cli.command_output import short_ids
from internal.channels.cli.exit_codes import OK, USAGE
from internal.channels.cli.id_lookup import find_id
from internal.channels.cli.open_question import OpenQuestion
from internal.channels.cli.records import age
from internal.channels.cli.render.event_rows import align_columns
from internal.channels.cli.render.task_tree import tree_rows
from internal.channels.cli.render.text import StyledLine, truncate_line
from internal.channels.cli.render.theme import THEMES
from internal.channels.cli.render.transcript import transcript_markdown
from internal.channels.cli.repl.commands.background import USAGE as PS_USAGE
from internal.channels.cli.repl.commands.background import ps
from internal.channels.cli.repl.commands.context import (
    MAX_CELL_WIDTH,
    SlashCommand,
    SlashContext,
)
from internal.channels.cli.repl.commands.conversation import clear, compact, context_use, copy
from internal.channels.cli.repl.commands.custom import load_commands
from internal.channels.cli.repl.commands.folder import diff, init, instructions
from internal.channels.commands.command import Arguments, Value, Values
from internal.channels.commands.registry import COMMANDS
from internal.channels.network_choice import (
    NETWORK_CHOICES,
    NETWORK_WORDS,
    format_network_choice,
    parse_network_choice,
)
from internal.i18n.catalog import MessageCatalog
from internal.i18n.commands import command_words
from internal.i18n.quantities import format_cost, format_count

_DEFAULT = "default"
_PLAN_REVIEWS = {"on": "always", "off": "off"}
_MAX_LISTED = 15
_MAX_CHANGED = 50
_MAX_TITLE_WIDTH = 200
_MIN_SIMILARITY = 0.4
"""Minimum similarity of an unknown name and a suggested command (`difflib` ratio)."""


class SlashCommands:
    """Parses and runs typed commands, under their names or the words of any language."""

    def __init__(self, context: SlashContext, custom: Path) -> None:
        self._context = context
        self._custom_folder = custom

    def load_custom(self) -> None:
        """Load the person's own commands, and name the files that cannot be used."""
        taken = command_words("terminal")
        self._context.custom, problems = load_commands(self._custom_folder, taken)
        for problem in problems:
            self._context.print_message(problem.reason, file=problem.file)

    def menu(self) -> Mapping[str, str]:
        """Return the description of every command: first by name, then by its other words."""
        described = {
            command.name: self._context.texts_of(command.name)("help") for command in SLASH_COMMANDS
        }
        described |= {one.name: one.description for one in self._context.custom}
        words = command_words("terminal").items()
        return described | {word: described[name] for word, name in words if word != name}

    def values(self, name: str) -> Values:
        """Return the values that completion offers for a command, [] if none are known."""
        command = _find(name)
        return () if command is None else command.arguments.offered(self._context)

    def run(self, line: str) -> None:
        """Start the command of a line that begins with a slash."""
        self._context.session.start(self._run(line))

    async def refresh_sessions(self) -> None:
        """Load the sessions that completion offers."""
        await _load_sessions(self._context)

    async def _run(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        command, argument = _find(name), argument.strip()
        own = next((one for one in self._context.custom if one.name == name.lower()), None)
        if own is not None:
            self._context.session.send(own.expand(argument))
        elif command is None:
            self._reject(name)
        elif argument and argument not in (command.arguments.choices or (argument,)):
            self._context.print_message("usage", usage=_usage(command))
        else:
            await command.handler(self._context, argument)

    def _reject(self, name: str) -> None:
        shown, typed = truncate_line(name, MAX_CELL_WIDTH), name[:MAX_CELL_WIDTH].lower()
        similar = difflib.get_close_matches(typed, list(self.menu()), n=1, cutoff=_MIN_SIMILARITY)
        if similar:
            self._context.print_message("nearest", name=f"/{shown}", near=f"/{similar[0]}")
        else:
            self._context.print_message("unknown", name=f"/{shown}")


def _find(word: str) -> SlashCommand | None:
    name = command_words("terminal").get(word.lower())
    return next((command for command in SLASH_COMMANDS if command.name == name), None)


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.arguments.usage}".rstrip()


async def _help(context: SlashContext, _arguments: str) -> None:
    messages, rows = context.session.messages, context.session.view.rows
    commands = [(_usage(one), context.texts_of(one.name)("help")) for one in SLASH_COMMANDS]
    commands += [(f"/{one.name}", one.description) for one in context.custom]
    keys = [rows.faint(line) for line in messages("keys").splitlines()]
    context.session.note(*align_columns(commands), StyledLine(()), *keys)


async def _new(context: SlashContext, _arguments: str) -> None:
    if not context.is_busy():
        context.session.begin_session()
        context.print_message("new_session")


async def _load_sessions(context: SlashContext) -> None:
    client = (await context.session.ready()).client
    context.sessions = await client.sessions()


async def _resume(context: SlashContext, arguments: str) -> None:
    session = context.session
    await _load_sessions(context)
    others = [one for one in context.sessions if one.session_id != session.session_id]
    if not others:
        context.print_message("no_sessions")
    elif not arguments:
        context.pick("resume")
    elif not context.is_busy():
        titled = [one.session_id for one in others if one.title == arguments]
        found = titled[0] if titled else find_id(arguments, [one.session_id for one in others])
        title = next(one.title for one in others if one.session_id == found)
        await session.open(found)
        context.print_notes(truncate_line(title, MAX_CELL_WIDTH) or found)


def _session_values(context: SlashContext) -> Values:
    others = [one for one in context.sessions if one.session_id != context.session.session_id]
    short = short_ids([one.session_id for one in others])
    now = datetime.now(UTC)
    return [
        Value(short[one.session_id], f"{_age(context, one.updated, now)}  {one.title}")
        for one in others
    ]


def _age(context: SlashContext, instant: str, now: datetime) -> str:
    unit, count = age(instant, now)
    return context.session.messages(f"age_{unit}", count=count)


async def _rename(context: SlashContext, arguments: str) -> None:
    session, title = context.session, truncate_line(arguments, _MAX_TITLE_WIDTH)
    if not title:
        context.print_message("usage", usage="/rename TITLE")
    elif session.session_id is None:
        context.print_message("no_session_yet")
    else:
        await (await session.ready()).client.rename(session.session_id, title)
        context.print_message("renamed", title=title)


async def _plan(context: SlashContext, arguments: str) -> None:
    view = context.session.view
    if arguments:
        context.session.choices.plan_review = _PLAN_REVIEWS[arguments]
        context.print_message(f"review_{arguments}")
    elif view.plan is None:
        context.print_message("no_plan")
    else:
        context.session.note(*view.rows.steps(view.plan, is_over=view.is_plan_over))


async def _permissions(context: SlashContext, arguments: str) -> None:
    choices, messages = context.session.choices, context.session.messages
    action, _, value = arguments.partition(" ")
    if action in {"allow", "deny"} and value.strip():
        await _add_rule(context, action, value.strip())
        return
    if action == "remove" and value.strip().isdecimal():
        await (await context.session.ready()).client.remove_rule(int(value))
        context.print_message("rule_removed", number=int(value))
        return
    chosen = EARLIER_NAMES.get(arguments, arguments)
    if chosen and chosen not in tuple(Mode):
        modes = "|".join(Mode)
        usage = f"/permissions {modes} | allow RULE | deny RULE | remove NUMBER"
        context.print_message("usage", usage=usage)
        return
    if chosen:
        choices.set_mode(chosen)
    more = f"mode_more_{choices.mode}"
    meaning = _mode_meaning(context, choices.mode) + (messages(more) if more in messages else "")
    context.print_message("mode_is", mode=choices.mode, meaning=meaning)
    await _list_rules(context)


def _mode_meaning(context: SlashContext, mode: str) -> str:
    return MessageCatalog("modes", context.session.messages.language)(mode)


def _permission_values(context: SlashContext) -> Values:
    modes = [Value(mode, _mode_meaning(context, mode)) for mode in Mode]
    return [*modes, *map(Value, ("allow ", "deny ", "remove "))]


async def _add_rule(context: SlashContext, action: str, rule: str) -> None:
    check = (await context.session.ready()).check_rule
    try:
        check(rule, action == "allow")
    except ValueError as error:
        raise GatewayError(USAGE, str(error)) from None
    getattr(context.session.choices, action).append(rule)
    context.print_message("rule_added", kind=action, rule=rule)


async def _list_rules(context: SlashContext) -> None:
    choices = context.session.choices
    own = [f"allow {rule}" for rule in choices.allow] + [f"deny {rule}" for rule in choices.deny]
    stored = await (await context.session.ready()).client.rules()
    context.print_notes(*own)
    if stored:
        context.print_table([one.cells for one in stored])
    elif not own:
        context.print_message("rules_none")


async def _network(context: SlashContext, arguments: str) -> None:
    choices = context.session.choices
    if arguments == _DEFAULT:
        choices.network = None
    elif arguments:
        chosen = parse_network_choice(arguments)
        if not isinstance(chosen, str):
            check = (await context.session.ready()).check_network
            try:
                check(chosen)
            except ValueError as error:
                raise GatewayError(USAGE, f"{error}. Use {NETWORK_CHOICES}.") from None
        choices.network = chosen
    network = choices.network or context.session.default_network
    hosts = "" if isinstance(network, str) else f" ({format_network_choice(network)})"
    context.print_message("network_is", network=f"{context.session.network_label()}{hosts}")


def _network_values(_context: SlashContext) -> Values:
    return [Value(one) for one in (*NETWORK_WORDS, _DEFAULT)]


async def _model(context: SlashContext, arguments: str) -> None:
    session = context.session
    if not arguments:
        context.models = await to_thread((await session.ready()).models)
        context.print_message("model_is", model=session.model)
        if context.models:
            context.pick("model")
        return
    session.choices.model = session.model = truncate_line(arguments, MAX_CELL_WIDTH)
    context.print_message("model_next", model=session.model)


def _model_values(context: SlashContext) -> Values:
    messages = context.session.messages
    return [
        Value(
            one.model,
            " · ".join(
                part
                for part in (
                    one.provider,
                    messages("window", count=format_count(one.context_window))
                    if one.context_window
                    else "",
                    messages("no_key") if one.key == "missing" else "",
                )
                if part
            ),
        )
        for one in context.models
    ]


async def _profile(context: SlashContext, arguments: str) -> None:
    choices = context.session.choices
    about = await (await context.session.ready()).client.defaults()
    if arguments in about.profiles:
        choices.profile = arguments
        context.print_message("profile_next", profile=arguments)
    else:
        current, known = choices.profile or about.profile, ", ".join(about.profiles)
        context.print_message("profile_is", profile=current, known=known)


async def _tools(context: SlashContext, _arguments: str) -> None:
    services = await context.session.ready()
    context.print_table([(one.name, one.risk, one.description) for one in services.tools()])


def _print_records(
    context: SlashContext, rows: Sequence[Sequence[str]], instants: Sequence[str]
) -> None:
    """Print records, whose first two columns are id and time, with short ids and ages."""
    short, now = short_ids([row[0] for row in rows]), datetime.now(UTC)
    context.print_table(
        [
            (short[row[0]], _age(context, instant, now), *row[2:])
            for row, instant in zip(rows, instants, strict=True)
        ]
    )


async def _tasks(context: SlashContext, _arguments: str) -> None:
    client = (await context.session.ready()).client
    found = await client.task_trees(limit=_MAX_LISTED)
    if found:
        context.print_table(tree_rows(found))
    else:
        context.print_message("no_tasks")


async def _questions(context: SlashContext, _arguments: str) -> None:
    found = await (await context.session.ready()).client.questions()
    if found:
        _print_records(context, [one.cells for one in found], [one.asked for one in found])
    else:
        context.print_message("no_questions")


async def _answer(context: SlashContext, arguments: str) -> None:
    """Answer a question of any session."""
    session = context.session
    services = await session.ready()
    prefix, _, text = arguments.partition(" ")
    if not text.strip():
        context.print_message("usage", usage="/answer ID yes|no|TEXT")
        return
    found = {one.question_id: one for one in await services.client.questions()}
    question_id = find_id(prefix, list(found))
    try:
        answer = services.decide(found[question_id].view, text.strip())
    except ValueError as error:
        raise GatewayError(USAGE, str(error)) from None
    session.view.answering.add(question_id)
    try:
        view = (await services.client.answer(question_id, answer)).view
        session.view.questions.pop(question_id, None)
    finally:
        session.view.answering.discard(question_id)
    session.note(*session.view.panel.closed(OpenQuestion(view), view["answer"], here=True))


def _question_values(context: SlashContext) -> Values:
    return [Value(one) for one in context.session.view.questions]


async def _files(context: SlashContext, arguments: str) -> None:
    """List the files and changes of this session; with `all`, of all sessions."""
    session = context.session
    if session.session_id is None and not arguments:
        context.print_message("no_session_yet")
        return
    wanted = {"session_id": None if arguments else session.session_id}
    client = (await session.ready()).client
    found = await client.artifacts(wanted, _MAX_LISTED)
    changed = (
        [] if arguments or not session.session_id else await client.changes(session.session_id)
    )
    if not found and not changed:
        context.print_message("no_files")
    rows = session.view.rows
    session.note(*(rows.produced_file(one.session_id, one._asdict()) for one in found))
    session.note(*(rows.changed_file(one) for one in changed[:_MAX_CHANGED]))
    if len(changed) > _MAX_CHANGED:
        context.print_message("more_lines", count=len(changed) - _MAX_CHANGED)


async def _paste(context: SlashContext, _arguments: str) -> None:
    context.session.paste_picture()


async def _cost(context: SlashContext, _arguments: str) -> None:
    session = context.session
    if session.session_id is None:
        context.print_message("no_session_yet")
        return
    found = await (await session.ready()).client.usage("session", session.session_id)
    known = [one.cost for one in found if one.cost is not None]
    context.print_message(
        "cost_session",
        cost=format_cost(sum(known)) if known else session.messages("cost_unknown"),
        input=format_count(sum(one.input_tokens for one in found)),
        output=format_count(sum(one.output_tokens for one in found)),
    )


async def _export(context: SlashContext, arguments: str) -> None:
    session_id = context.session.session_id
    if session_id is None:
        context.print_message("no_session_yet")
        return
    client = (await context.session.ready()).client
    text = transcript_markdown(
        await client.transcript(session_id), session_id, context.session.messages.language
    )
    path = context.folder / (arguments or f"{session_id}.md")
    try:
        with path.expanduser().open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        context.print_message("export_failed", path=str(path), reason=error.strerror)
    else:
        context.print_message("exported", path=str(path))


async def _theme(context: SlashContext, arguments: str) -> None:
    if arguments in THEMES:
        context.theme = arguments
        context.set_theme(arguments)
    elif not arguments:
        context.pick("theme")
        return
    context.print_message("theme_is", theme=context.theme, known=", ".join(THEMES))


def _theme_values(_context: SlashContext) -> Values:
    return [Value(theme) for theme in THEMES]


async def _doctor(context: SlashContext, _arguments: str) -> None:
    context.print_notes(*(await context.session.ready()).doctor())


async def _quit(context: SlashContext, _arguments: str) -> None:
    context.quit(OK)


SLASH_COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand("help", _help),
    SlashCommand("new", _new),
    SlashCommand("clear", clear),
    SlashCommand("resume", _resume, Arguments("[ID]", values=_session_values)),
    SlashCommand("rename", _rename, Arguments("TITLE")),
    SlashCommand("plan", _plan, Arguments("[on|off]", tuple(_PLAN_REVIEWS))),
    SlashCommand(
        "permissions",
        _permissions,
        Arguments("[MODE|allow|deny|remove]", values=_permission_values),
    ),
    SlashCommand(
        "network",
        _network,
        Arguments("[off|registries|open|HOSTS]", values=_network_values),
    ),
    SlashCommand("model", _model, Arguments("[NAME]", values=_model_values)),
    SlashCommand("profile", _profile, Arguments("[NAME]")),
    SlashCommand("tools", _tools),
    SlashCommand("ps", ps, Arguments(PS_USAGE)),
    SlashCommand("tasks", _tasks),
    SlashCommand("questions", _questions),
    SlashCommand("answer", _answer, Arguments("ID yes|no|TEXT", values=_question_values)),
    SlashCommand("files", _files, Arguments("[all]", ("all",))),
    SlashCommand("paste", _paste),
    SlashCommand("diff", diff, Arguments("[NAME]")),
    SlashCommand("init", init),
    SlashCommand("instructions", instructions),
    *COMMANDS,
    SlashCommand("context", context_use),
    SlashCommand("compact", compact),
    SlashCommand("cost", _cost),
    SlashCommand("copy", copy),
    SlashCommand("export", _export, Arguments("[FILE]")),
    SlashCommand("theme", _theme, Arguments("[NAME]", values=_theme_values)),
    SlashCommand("doctor", _doctor),
    SlashCommand("quit", _quit),
)
"""Every command, in the order in which the menu and `/help` list them."""

"""Commands that look and ask: through the gateway that runs here, or at the data folder itself."""

import asyncio
import os
import shutil
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from ksuid import Ksuid

from internal.agent.app.background_task import background_task
from internal.agent.app.events.broadcaster import EventBroadcaster
from internal.agent.app.gateway import Gateway
from internal.agent.app.runs.recovery import Recovery
from internal.agent.app.task_options import TaskDefaults
from internal.agent.store.stores import Stores
from internal.attachments.local import LocalAttachments
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.exit_codes import FAILED, USAGE, CliExit, output_failure
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.people import People
from internal.channels.cli.phrases import Phrases
from internal.channels.cli.repl.local_client import LocalHost
from internal.channels.cli.repl.lookups import Lookups
from internal.channels.cli.repl.remote_client import RemoteHost
from internal.config.home import prepare
from internal.config.loader import Loaded, load
from internal.dispatch.leases import LeaseKeeper
from internal.dispatch.terminal import TerminalDispatcher
from internal.i18n.catalog import MessageCatalog
from internal.llm.model_catalog import make_model_book
from internal.observability.clock import SystemClock
from internal.storage.database_url import open_database
from larkspur.failing import sentences
from larkspur.mapping import briefing_defaults
from larkspur.oneshot import gateway_of
from larkspur.people_arguments import PEOPLE
from larkspur.speaking import language
from larkspur.version import VERSION


@dataclass(frozen=True)
class Desk:
    """A house without a model: nothing runs in it."""

    gateway: Gateway
    broadcaster: EventBroadcaster
    attachments: LocalAttachments
    defaults: TaskDefaults


def run_lookup(wanted: Namespace) -> int:
    """Do the command and return the exit code.

    Raises:
        Leave: it cannot be done.
    """
    with sentences():
        try:
            return asyncio.run(_run(wanted))
        except OSError as error:
            raise output_failure(error) from error


async def _run(wanted: Namespace) -> int:
    width = shutil.get_terminal_size((100, 24)).columns
    as_json = getattr(wanted, "json", False)
    async with _host(wanted) as host:
        if wanted.command in PEOPLE:
            people = People(host, Output(), Phrases(language()), as_json)
            return await _about_people(people, wanted)
        lookups = Lookups(host, Output(), MessageCatalog("repl", language()), width, as_json)
        return await _looked_up(lookups, wanted)


async def _looked_up(lookups: Lookups, wanted: Namespace) -> int:
    match wanted.command:
        case "sessions":
            return await _sessions(lookups, wanted)
        case "tasks":
            return await lookups.tasks(wanted.session)
        case "cost":
            return await lookups.cost(wanted.by)
        case "say":
            return await lookups.say(wanted.id, " ".join(wanted.text))
        case "stop":
            return await lookups.stop(wanted.id)
        case _:
            return await lookups.watch(wanted.id)


async def _about_people(people: People, wanted: Namespace) -> int:
    match wanted.command:
        case "questions":
            return await people.questions(everything=wanted.all)
        case "pair":
            return await _pair(people, wanted)
        case "rules":
            return await _rules(people, wanted)
        case _:
            return await people.audit()


async def _pair(people: People, wanted: Namespace) -> int:
    match wanted.what, wanted.id:
        case None, None:
            return await people.pair(wanted.role)
        case "list", None:
            return await people.known()
        case "remove", str(who):
            return await people.unpair(who)
        case _:
            raise CliExit(USAGE, "Usage: larkspur pair [--role ROLE] | pair list | pair remove ID")


async def _rules(people: People, wanted: Namespace) -> int:
    match wanted.what, wanted.number:
        case "list", None:
            return await people.rules()
        case "remove", int(number):
            return await people.remove_rule(number)
        case _:
            raise CliExit(USAGE, "Usage: larkspur rules [list] | rules remove N")


async def _sessions(lookups: Lookups, wanted: Namespace) -> int:
    match wanted.what, wanted.rest:
        case "list", []:
            return await lookups.sessions()
        case (("show" | "export"), [one]):
            return await lookups.show(one)
        case "export", [one, path]:
            return await _export(lookups, one, path)
        case "rm", [_, *_] as some:
            return await lookups.remove(some)
        case "rename", [one, title]:
            return await lookups.rename(one, title)
        case _:
            raise CliExit(
                USAGE,
                "Usage: larkspur sessions list | show ID | export ID [FILE] | rm ID …"
                " | rename ID TITLE",
            )


async def _export(lookups: Lookups, written: str, path: str) -> int:
    session_id = await lookups.session_of(written)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CliExit(FAILED, f"{path} cannot be written: {error.strerror}.") from None
    try:
        return await lookups._replace(output=Output(file)).show(session_id)
    finally:
        os.close(file)


@asynccontextmanager
async def _host(wanted: Namespace) -> AsyncGenerator[GatewayClient]:
    remote = gateway_of(wanted)
    if remote is not None:
        yield RemoteHost(*remote)
        return
    loaded = load(config=wanted.config)
    prepare(loaded.home)
    async with _desk(loaded) as desk, LocalHost(desk, trouble=print_error) as host:
        yield host


@asynccontextmanager
async def _desk(loaded: Loaded) -> AsyncGenerator[Desk]:
    settings, stores, clock = loaded.settings, Stores(), SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings.database.path))
        broadcaster = EventBroadcaster(database, stores, clock, VERSION)
        await broadcaster.start()
        await stack.enter_async_context(background_task(broadcaster.follow()))
        stack.callback(broadcaster.close)
        seconds = settings.dispatch.lease_seconds
        leases = LeaseKeeper(
            f"desk-{Ksuid()}", seconds, database=database, stores=stores, clock=clock
        )
        recovery = Recovery(database, stores, broadcaster=broadcaster, clock=clock)
        dispatcher = TerminalDispatcher(database, stores, clock, leases=leases, recovery=recovery)
        yield Desk(
            gateway=Gateway(
                database, stores, broadcaster=broadcaster, dispatcher=dispatcher, clock=clock
            ),
            broadcaster=broadcaster,
            attachments=LocalAttachments(loaded.home / "attachments"),
            defaults=briefing_defaults(settings, make_model_book(settings.llm)),
        )

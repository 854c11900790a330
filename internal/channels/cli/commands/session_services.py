"""The services of a session; imported after its first frame is drawn."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from internal.agent.domain.permissions.policy import Policy, with_network
from internal.agent.domain.permissions.rules import RuleError
from internal.agent.domain.plans import read_steps
from internal.channels.cli.answer_parser import DecisionText, parse_answer
from internal.channels.cli.application import Application, UiChoices
from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.commands.gateway import RunningGateway
from internal.channels.cli.commands.system.doctor import format_check, run_checks
from internal.channels.cli.exit_codes import CliExit
from internal.channels.cli.repl.services import ReplServices
from internal.channels.cli.transports.interface import Transport
from internal.channels.cli.transports.threaded import ThreadedHttpTransport, in_thread
from internal.config.terminal_env import terminal_facts
from internal.i18n.language import resolve_language
from internal.settings.types import ConfigError


@asynccontextmanager
async def open_services(
    config: str | None,
    running: RunningGateway | None,
    context: CommandContext,
    notify: Callable[[str], None],
) -> AsyncGenerator[ReplServices]:
    """Connect to the running gateway, or open the services of this process.

    Raises:
        LarkspurError, ConfigError, HomeError: the services of this process cannot be opened.
    """
    application = await in_thread(context.application)
    if running is not None:
        logging.getLogger().addHandler(logging.NullHandler())  # log lines would corrupt the screen
        shown = await in_thread(partial(_configured_ui, application, config))
        yield _services(ThreadedHttpTransport(*running), shown, application, config)
        return
    async with application.open_session(config, notify) as (transport, language):
        _, ui = await in_thread(partial(_configured_ui, application, config))
        yield _services(transport, (language, ui), application, config)


def _services(
    transport: Transport,
    shown: tuple[str, UiChoices],
    application: Application,
    config: str | None,
) -> ReplServices:
    return ReplServices(
        client=GatewayClient(transport),
        ui=shown[1],
        language=resolve_language(shown[0], terminal_facts().locale),
        tools=application.tools,
        instructions=partial(application.instructions, config),
        models=partial(application.models, config),
        doctor=lambda: [format_check(check) for check in run_checks(application, config)],
        check_rule=partial(_check_rule, application),
        check_network=_check_network,
        decide=_decide,
        read_steps=read_steps,
    )


def _configured_ui(application: Application, config: str | None) -> tuple[str, UiChoices]:
    try:
        settings = application.settings(config)
    except ConfigError:
        return (
            "auto",
            UiChoices(),
        )  # the gateway has its own settings; errors in these do not matter
    return settings.language, settings.ui


def _check_rule(application: Application, rule: str, allows: bool) -> None:
    try:
        application.check_rule(rule, allows=allows)
    except RuleError as error:
        raise ValueError(str(error)) from error


def _check_network(hosts: tuple[str, ...]) -> None:
    try:
        with_network(Policy(), hosts)
    except RuleError as error:
        raise ValueError(str(error)) from error


def _decide(question: Mapping[str, Any], text: str) -> dict[str, Any]:
    try:
        return parse_answer(question, DecisionText(text))
    except CliExit as error:
        raise ValueError(str(error)) from error

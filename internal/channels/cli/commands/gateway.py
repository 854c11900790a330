"""Choice of the gateway: a running one, or this process. Standard library only."""

from argparse import Namespace
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from internal.channels.cli.client import RETRY_SECONDS, GatewayClient
from internal.channels.cli.commands.context import CommandContext
from internal.channels.cli.exit_codes import CONFIG, FAILED, CliExit, output_failure
from internal.channels.cli.output import print_error
from internal.channels.cli.transports.http import HttpEndpoint, HttpTransport
from internal.channels.cli.transports.interface import Transport, Unreachable, drive
from internal.config import home as home_folder

if TYPE_CHECKING:
    from internal.channels.cli.application import TransportWork

ClientWork = Callable[[GatewayClient], Coroutine[Any, Any, int]]
"""The work of a command on a gateway; it returns the exit code."""


class RunningGateway(NamedTuple):
    """A running gateway: its endpoint, and how to find it again after a restart."""

    endpoint: HttpEndpoint
    find: Callable[[], HttpEndpoint | None]


def find_gateway(args: Namespace) -> RunningGateway | None:
    """Return the running gateway to use, or None to work in this process.

    Prints the reason when a running gateway is not used.

    Raises:
        CliExit: the gateway of `--server` does not answer.
        HomeError: the home folder or the token cannot be used.
    """
    home = home_folder.locate()
    if args.server is not None:
        endpoint = HttpEndpoint(args.server, _local_token(home))
        if not endpoint.answers():
            raise CliExit(CONFIG, f"No gateway answers at {endpoint.url}.")
        return RunningGateway(endpoint, lambda: None)
    if args.local:
        return None
    local = _local_endpoint(home_folder.find_gateway(home), args)

    def find() -> HttpEndpoint | None:
        address = home_folder.find_gateway(home)
        if address is None:
            return None
        return HttpEndpoint(address.url, home_folder.LocalToken(home).read)

    return None if local is None else RunningGateway(local, find)


def run_with_gateway(args: Namespace, work: ClientWork) -> int:
    """Run `work` on the gateway of `--server`, or on the running one.

    Raises:
        CliExit: no gateway runs or answers, the work fails, or the output cannot be written.
        HomeError: the home folder or the token cannot be used.
    """
    endpoint = running_endpoint(args.server)
    if not endpoint.answers():
        raise CliExit(CONFIG, f"No gateway answers at {endpoint.url}.")
    with _output_errors():
        return drive(_on_transport(work, RETRY_SECONDS)(HttpTransport(endpoint, lambda: None)))


def answering_gateway() -> HttpEndpoint | None:
    """Return the endpoint of the gateway of the home folder, None if none answers.

    Raises:
        HomeError: the home folder or the token cannot be used.
    """
    home = home_folder.locate()
    address = home_folder.find_gateway(home)
    endpoint = None if address is None else HttpEndpoint(address.url, _local_token(home))
    return endpoint if endpoint is not None and endpoint.answers() else None


def running_endpoint(server: str | None) -> HttpEndpoint:
    """Return the endpoint of the gateway at a URL, or of the running one, which may not answer.

    Raises:
        CliExit: no gateway runs.
        HomeError: the home folder or the token cannot be used.
    """
    home = home_folder.locate()
    address = home_folder.find_gateway(home)
    url = server or (address and address.url)
    if not url:
        raise CliExit(FAILED, not_running(home))
    return HttpEndpoint(url, _local_token(home))


def not_running(home: Path) -> str:
    """Return the sentence that no gateway runs in a home folder, with advice."""
    missing = "" if home.is_dir() else ", which does not exist"
    return (
        "No gateway is running. Start one with `larkspur serve`."
        f" It was looked for in {home} (from {home_folder.origin()}){missing};"
        " for another folder set LARKSPUR_HOME, for another address --server."
    )


def run_with_records(args: Namespace, context: CommandContext, work: ClientWork) -> int:
    """Run `work` on a running gateway, or on the stored records in this process.

    Raises:
        CliExit: the work fails, or the output cannot be written.
    """
    work_on, running = _on_transport(work, RETRY_SECONDS), find_gateway(args)
    with _output_errors():
        if running is not None:
            return drive(work_on(HttpTransport(*running)))
        return context.application().run_with_records(args.config, work_on)


def run_with_agent(
    args: Namespace,
    context: CommandContext,
    work: ClientWork,
    *,
    retry_seconds: float = RETRY_SECONDS,
    needs_gateway: bool = False,
) -> int:
    """Run `work` on a running gateway, or in this process, which then executes its tasks.

    Args:
        args: the parsed command line.
        context: the context of the command.
        work: the work of the command.
        retry_seconds: how long requests are repeated while the gateway does not answer.
        needs_gateway: fail without a running gateway.

    Raises:
        CliExit: the work fails, or the output cannot be written.
    """
    work_on, running = _on_transport(work, retry_seconds), find_gateway(args)
    with _output_errors():
        if running is not None:
            return drive(work_on(HttpTransport(*running)))
        if needs_gateway:
            raise CliExit(FAILED, "--detach needs a running gateway: start `larkspur serve`.")
        return context.application().run_with_agent(args.config, work_on)


def _on_transport(work: ClientWork, retry_seconds: float) -> "TransportWork":
    """Return the work as a function of the transport that its client uses."""

    def report(reason: Unreachable) -> None:
        print_error(f"The gateway does not answer ({reason}); waiting for it …")

    async def work_on(transport: Transport) -> int:
        return await work(GatewayClient(transport, retry_seconds, report))

    return work_on


@contextmanager
def _output_errors() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise output_failure(error) from error


def _local_endpoint(
    address: home_folder.GatewayAddress | None, args: Namespace
) -> HttpEndpoint | None:
    """Return the endpoint of the gateway on this machine, None if it cannot be used."""
    if address is None:
        return None
    provider = home_folder.provider_named()
    if provider and provider != address.provider:
        print_error(
            f"The gateway uses {address.provider}, not {provider}: working in this process."
        )
        return None
    if args.config is not None:
        print_error("The gateway has its own settings: working in this process with --config.")
        return None
    endpoint = HttpEndpoint(address.url, _local_token(home_folder.locate()))
    if not endpoint.answers():
        print_error(f"The gateway at {endpoint.url} does not answer: working in this process.")
        return None
    return endpoint


def _local_token(home: Path) -> Callable[[], str]:
    """Return a function that reads the token; raise HomeError now if that is impossible."""
    token = home_folder.LocalToken(home)
    token.read()
    return token.read

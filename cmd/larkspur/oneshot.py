"""One shot: what is asked, and which gateway does it. Standard library only: it must start fast."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from internal.channels.cli.attached import Attached
from internal.channels.cli.exit_codes import BROKEN_PIPE, CONFIG, FAILED, USAGE, CliExit
from internal.channels.cli.http_client import Door
from internal.channels.cli.output import Output, print_error
from internal.channels.cli.task_request import OneShotRequest, compose, read_files, read_stdin
from internal.config import home as home_folder

_OPTIONS = (
    *("permission_mode", "allow", "deny", "plan_review"),
    *("model", "max_iterations", "max_cost", "timeout_seconds"),
)


def order_of(wanted: Namespace) -> OneShotRequest | None:
    """Read what is to be done, with standard input and files. None: list the sessions instead.

    Raises:
        Leave: nothing is asked, or something of it cannot be read.
    """
    if sys.stdout is None:
        raise CliExit(BROKEN_PIPE)
    if wanted.resume == "":
        return None
    if wanted.shot and wanted.prompt:
        raise CliExit(USAGE, f"One prompt is enough; quote it whole: {wanted.prompt} is too much.")
    options = {name: getattr(wanted, name) for name in _OPTIONS}
    return OneShotRequest(
        task=compose(wanted.shot or wanted.prompt, read_stdin()),
        output=wanted.output_format,
        options={
            "workspace": working_folder(),
            # whoever waits at a pipe is not asked for each call; a task left alone may wait
            "approvals": wanted.detach,
            **{name: value for name, value in options.items() if value},
        },
        profile=wanted.profile,
        session=wanted.resume,
        last=wanted.last,
        title=wanted.session_name,
        files=read_files(wanted.files),
        detach=wanted.detach,
    )


def attach(wanted: Namespace) -> Attached | None:
    """Find the gateway that does the work; None when this process does it itself.

    Raises:
        Leave: the gateway that was named does not answer, or there is none for a detached task.
        HomeError: the home folder or the token cannot be used.
    """
    found = gateway_of(wanted)
    if found is not None:
        return Attached(*found, Output())
    if wanted.detach:
        raise CliExit(FAILED, "--detach hands the task to a gateway: start `larkspur serve`.")
    return None


def gateway_of(wanted: Namespace) -> tuple[Door, Callable[[], Door | None]] | None:
    """Return the door of the gateway, and what finds it again once it went away.

    Raises:
        Leave: the gateway that was named does not answer.
        HomeError: the home folder or the token cannot be used.
    """
    home = home_folder.locate()
    if wanted.server is not None:
        door = Door(wanted.server, home_folder.read_token(home))
        if not door.answers():
            raise CliExit(CONFIG, f"No gateway answers at {door.url}.")
        return door, lambda: None
    door_here = None if wanted.local else _door_of(home_folder.find_gateway(home), wanted)
    if door_here is None:
        return None

    def find() -> Door | None:
        address = home_folder.find_gateway(home)
        return None if address is None else Door(address.url, home_folder.read_token(home))

    return door_here, find


def list_sessions(sessions: Iterable[Mapping[str, Any]]) -> int:
    """Show the newest sessions to whoever named none, and end as a wrong usage does."""
    for session in sessions:
        print_error(f"{session['session_id']}  {session['updated'][:16]}  {session['title']}")
    raise CliExit(USAGE, 'Say which: larkspur -r ID -p "…"; the newest is first, -c takes that.')


def _door_of(address: home_folder.GatewayAddress | None, wanted: Namespace) -> Door | None:
    """Return the door of the gateway that runs here, unless something else is wanted of it."""
    if address is None:
        return None
    provider = home_folder.provider_named()
    if provider and provider != address.provider:
        print_error(
            f"The gateway runs {address.provider}, not {provider}: working in this process."
        )
        return None
    if wanted.config is not None:
        print_error("The gateway has settings of its own: working in this process with --config.")
        return None
    door = Door(address.url, home_folder.read_token(home_folder.locate()))
    if not door.answers():
        print_error(f"The gateway at {door.url} does not answer: working in this process.")
        return None
    return door


def working_folder() -> str:
    """Return the folder that tools work in.

    Raises:
        Leave: it is gone, or its name is not text.
    """
    try:
        folder = os.getcwd()  # noqa: PTH109 - the same, without an import
        folder.encode()
    except OSError as error:
        raise CliExit(USAGE, f"The working folder cannot be used: {error.strerror}.") from None
    except UnicodeEncodeError:
        raise CliExit(USAGE, "The name of the working folder is not UTF-8.") from None
    return folder

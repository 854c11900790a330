"""The choice between a running gateway and this process."""

from argparse import Namespace

import pytest

from internal.channels.cli.client import GatewayClient
from internal.channels.cli.commands.gateway import find_gateway, run_with_records
from internal.channels.cli.exit_codes import BROKEN_PIPE, CliExit
from tests.support.command_runner import CommandRunner, logging_restored

LOCAL = Namespace(server=None, local=True, config=None)


def test_local_uses_no_gateway() -> None:
    assert find_gateway(LOCAL) is None


def test_work_in_this_process_has_a_client(run: CommandRunner) -> None:
    async def work(client: GatewayClient) -> int:
        assert client.transport.via == "process"
        return len(await client.tasks())

    with logging_restored():
        assert run_with_records(LOCAL, run.context, work) == 0


def test_closed_output_ends_the_command_quietly(run: CommandRunner) -> None:
    async def work(_client: GatewayClient) -> int:
        raise BrokenPipeError

    with logging_restored(), pytest.raises(CliExit) as exit_:
        run_with_records(LOCAL, run.context, work)
    assert (exit_.value.code, str(exit_.value)) == (BROKEN_PIPE, "")

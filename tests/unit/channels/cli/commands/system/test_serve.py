"""`larkspur serve`."""

from internal.channels.cli.commands.registry import COMMANDS, build_parser
from tests.support.command_runner import CommandRunner


def test_flags_are_parsed() -> None:
    args = build_parser(COMMANDS).parse_args(
        ["serve", "--host", "::1", "--port", "0", "--lark-sim"]
    )
    assert (args.host, args.port, args.lark_sim) == ("::1", 0, True)


def test_port_must_be_a_number(run: CommandRunner) -> None:
    served = run("serve", "--port", "many")
    assert (served.code, served.message.endswith("See larkspur serve --help")) == (2, True)

"""The command line that adds a server again."""

from internal.mcp.launch.command_line import FurtherOptions, add_command_line


def test_options_of_an_entry_and_further_ones_are_given() -> None:
    entry = {
        "command": "server",
        "args": ["a b"],
        "env": {"MY_TOKEN": "canary", "OTHER": "1", "PATH": "/usr/bin"},
        "network": ["a.example"],
        "writable": ["/data"],
        "cwd": "/data",
        "risk": "read",
    }
    further = FurtherOptions(["b.example:1"], ["/more"], (), {"MODE": "x"}, private=True)
    assert add_command_line("mine", entry, further) == (
        "larkspur mcp add mine --env 'MY_TOKEN=…' --env OTHER=1 --env MODE=x --network a.example"
        " --network b.example:1 --read /more --write /data --cwd /data --risk read --private"
        " -- server 'a b'"
    )


def test_a_downloaded_server_is_added_with_what_was_typed() -> None:
    entry = {
        "command": "/home/ada/.larkspur/mcp-packages/mine/bin/x",
        "download": ["uvx", "x"],
        "read_only": ["/home/ada/.larkspur/mcp-packages/mine", "/data"],
        "network": "off",
    }
    place = "/home/ada/.larkspur/mcp-packages/mine"
    command = add_command_line("mine", entry, FurtherOptions(), without=place)
    assert command == "larkspur mcp add mine --read /data -- uvx x"


def test_an_address_keeps_its_headers_without_their_values() -> None:
    entry = {"url": "https://a.example/mcp", "headers": {"X-Key": "canary", "Y": "${Y}"}}
    command = add_command_line("mine", entry, FurtherOptions())
    assert command == (
        "larkspur mcp add mine --header 'X-Key: …' --header 'Y: ${Y}' --url https://a.example/mcp"
    )

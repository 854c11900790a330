"""The list of background commands of a chat."""

from tests.support.echo_app import EchoApp


async def test_a_conversation_without_commands(app: EchoApp) -> None:
    phrases = (await app.message("x")).phrases
    assert (await app.command("/ps")).text == phrases("no_commands")
    await app.submit("count")
    assert (await app.command("/ps")).text == phrases("no_commands")
    assert (await app.command("/stop bg-1")).text == phrases("nothing_to_stop")

"""The command about the skills of the gateway."""

from internal.channels.commands.command import ChannelContext, SharedCommand


async def _list(context: ChannelContext, _argument: str) -> None:
    """List the skills with their states, and how to review a withheld one."""
    texts = context.texts_of(COMMAND.name)
    found = await (await context.open_gateway()).skills()
    if not found:
        context.say(texts("none"))
        return
    rows = [
        {
            "name": each.name,
            "state": texts(each.state.replace(" ", "_")),
            "description": each.description,
        }
        for each in found
    ]
    context.say_rows(texts, rows)
    if any(each.state != "offered" for each in found):
        context.say(texts("withheld"))


COMMAND = SharedCommand("skills", _list)

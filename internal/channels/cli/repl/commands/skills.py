"""The command about the skills of the gateway."""

from internal.channels.cli.repl.commands.context import SlashContext


async def skills(context: SlashContext, _arguments: str) -> None:
    """List the skills with their states, and say how a withheld one is reviewed."""
    session = context.session
    found = await (await session.ready()).client.skills()
    if not found:
        context.print_message("no_skills")
        return
    context.print_table(
        [
            (
                one.name,
                session.messages(f"skill_{one.state.replace(' ', '_')}"),
                one.description,
            )
            for one in found
        ]
    )
    if any(one.state != "offered" for one in found):
        context.print_message("skills_withheld")

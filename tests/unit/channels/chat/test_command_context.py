"""Lists in the reply to a command."""

from internal.channels.chat.command_context import ChatContext
from tests.support.echo_app import EchoApp
from tests.support.skills import write_skill
from tests.support.web_app import defaults


async def chat_context(app: EchoApp) -> ChatContext:
    return ChatContext(
        await app.message("x"),
        app.gateway,
        app.users,
        app.answers,
        defaults=defaults(),
        instructions=app.instructions,
    )


async def test_skills_are_listed_with_their_states(app: EchoApp) -> None:
    assert (await app.command("/skills")).text == "There are no skills."
    write_skill(app.home)
    assert (await app.command("/技能")).text == (
        "Skills:\n\n"
        "- `bird-song` (not reviewed) Writes down the songs of birds.\n\n"
        "Tasks use a skill only after the owner has reviewed it: `larkspur skills review NAME`, "
        "or on the page under Settings → Skills. After a change it is reviewed again."
    )
    assert (await app.command("/mcp")).text == "There are no MCP servers."


async def test_a_long_list_of_skills_is_cut_and_foreign_texts_are_escaped(app: EchoApp) -> None:
    context = await chat_context(app)
    rows = [{"name": f"s{n}", "state": "in use", "description": "*x*\n"} for n in range(32)]
    context.say_rows(context.texts_of("skills"), rows)
    lines = context.replies[0].splitlines()
    assert lines[:3] == ["Skills:", "", "- `s0` (in use) \\*x\\*"]
    assert lines[-2:] == ["- `s29` (in use) \\*x\\*", "- and 2 more"]


async def test_notes_are_below_the_rows(app: EchoApp) -> None:
    context = await chat_context(app)
    row = {"name": "docs\u202e", "state": "in use", "tools": "3", "target": "server --stdio"}
    context.say_rows(context.texts_of("mcp"), [row] * 31, ["It is <slow>."])
    lines = context.replies[0].splitlines()
    assert lines[:3] == ["MCP servers:", "", "- `docs\\u202e` (in use), tools: 3"]
    assert len(lines) == 2 + 31 + 1
    assert lines[-1] == "- It is \\<slow\\>."

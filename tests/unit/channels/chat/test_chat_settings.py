"""Commands that change or show the settings, usage and pairing of a chat."""

from functools import partial

import pytest
from msgspec.structs import replace

from internal.agent.domain.permissions.policy import Policy
from internal.agent.domain.principals import LOCAL_OWNER
from internal.agent.domain.tasks import Profile
from internal.channels.chat.answers import MessageContext
from internal.channels.chat.command_handlers import CommandHandlers
from internal.channels.chat.command_parser import ChatCommand
from internal.i18n.chat import ChatPhrases
from tests.support.echo_app import CHAT, EchoApp
from tests.support.web_app import defaults


@pytest.fixture
def commands(app: EchoApp) -> CommandHandlers:
    return settings_commands(app)


def settings_commands(app: EchoApp, allow: tuple[str, ...] = ()) -> CommandHandlers:
    isolated = replace(defaults(), isolated=True, policy=Policy(allow=allow))
    return CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        defaults=isolated,
        instructions=app.instructions,
    )


async def reply(
    app: EchoApp, commands: CommandHandlers, command: ChatCommand, message: MessageContext
) -> str:
    return (await commands.handle(command, await app.again(message))).text


async def test_an_operator_turns_plan_review_on(app: EchoApp, commands: CommandHandlers) -> None:
    answer = await reply(app, commands, ChatCommand("plan", "on"), await app.message("/plan on"))
    assert "/plan off" in answer
    assert (await app.gateway.chats.get_settings(CHAT)).plan_review == "always"


async def test_only_the_owner_turns_off_what_the_settings_require(
    app: EchoApp, commands: CommandHandlers
) -> None:
    await reply(app, commands, ChatCommand("plan", "off"), await app.message("/plan off"))
    assert (await app.gateway.chats.get_settings(CHAT)).plan_review is None
    owner = await app.message("/plan off", "lin", "owner")
    await reply(app, commands, ChatCommand("plan", "off"), owner)
    assert (await app.gateway.chats.get_settings(CHAT)).plan_review == "off"


@pytest.mark.parametrize("name", ["plan", "model", "network", "profile", "instructions"])
async def test_others_change_nothing(app: EchoApp, commands: CommandHandlers, name: str) -> None:
    message = await app.message("x", "guest", "talk")
    answer = await reply(app, commands, ChatCommand(name, "on"), message)
    assert answer == message.phrases("setting_not_allowed")


async def test_a_model_is_named_and_reset(app: EchoApp, commands: CommandHandlers) -> None:
    message = await app.message("/model")
    assert "big-1" in await reply(app, commands, ChatCommand("model", "big-1"), message)
    assert (await app.gateway.chats.get_settings(CHAT)).model == "big-1"
    await reply(app, commands, ChatCommand("model", "default"), message)
    assert (await app.gateway.chats.get_settings(CHAT)).model == ""
    wrong = await reply(app, commands, ChatCommand("model", "no such name"), message)
    assert wrong == message.phrases("model_how", command="/model")


async def test_an_operator_narrows_the_network_and_the_owner_widens_it(app: EchoApp) -> None:
    commands = settings_commands(app, allow=("network(a.example)", "network(b.example)"))
    operator = await app.message("/network")
    owner = await app.message("/network", "lin", "owner")

    async def choose(text: str, message: MessageContext) -> str:
        return await reply(app, commands, ChatCommand("network", text), message)

    shown = await choose("", operator)
    assert "some hosts only (a.example, b.example)" in shown
    assert "(a.example)" in await choose("a.example", operator)
    assert await choose("open", operator) == operator.phrases("network_too_wide")
    assert (await app.gateway.chats.get_settings(CHAT)).network == ("a.example",)
    assert "with network" in await choose("open", owner)
    assert await choose("a b http://c", owner) == owner.phrases("network_how", command="/network")
    assert "without network" in await choose("off", operator)
    assert await choose("default", operator) == shown


async def test_without_isolation_the_network_is_not_shown(app: EchoApp) -> None:
    commands = CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        defaults=defaults(),
        instructions=app.instructions,
    )
    message = await app.message("/network")
    answer = await reply(app, commands, ChatCommand("network"), message)
    assert answer == message.phrases("not_isolated")


async def test_an_operator_chooses_the_profile_of_a_chat(app: EchoApp) -> None:
    profiles = {"default": Profile(), "support": Profile("support", description="Helps *people*")}
    known = replace(defaults(), profiles=profiles)
    commands = CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        defaults=known,
        instructions=app.instructions,
    )
    message = await app.message("/profile")

    async def choose(text: str) -> str:
        return await reply(app, commands, ChatCommand("profile", text), message)

    shown = await choose("")
    assert "profile `default`" in shown
    assert "- `support` Helps \\*people\\*" in shown
    assert "profile `support`" in await choose("Support")
    assert (await app.gateway.chats.get_settings(CHAT)).profile == "support"
    assert "Did you mean support?" in await choose("suport")
    assert "profile `default`" in await choose("default")


async def test_operators_set_and_remove_the_instructions_of_a_chat(
    app: EchoApp, commands: CommandHandlers
) -> None:
    operator, guest = await app.message("x"), await app.message("x", "guest", "talk")

    async def send(text: str, message: MessageContext) -> str:
        return await reply(app, commands, ChatCommand("instructions", text), message)

    assert "no instructions" in await send("", guest)
    assert "Answer in French.\nBe brief.\\u202e" in await send(
        "Answer in French.\nBe brief.\u202e", operator
    )
    stored = (await app.gateway.chats.get_settings(CHAT)).instructions
    assert stored == "Answer in French.\nBe brief.\u202e"
    assert "Answer in French." in await send("", guest)
    assert "nothing was changed" in await send("\u00e9" * 5_000, operator)
    assert (await app.gateway.chats.get_settings(CHAT)).instructions == stored
    for word in ("off", "\u9ed8\u8ba4"):
        await send("x", operator)
        assert "no instructions" in await send(word, operator)
        assert (await app.gateway.chats.get_settings(CHAT)).instructions == ""


async def test_the_texts_that_apply_are_listed_with_their_sizes(
    app: EchoApp, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace = tmp_path_factory.mktemp("shop")
    (workspace / ".git").mkdir()
    (workspace / "AGENTS.md").write_text("x" * 40_000)
    (workspace / "sub").mkdir()
    (workspace / "sub" / "CLAUDE.md").symlink_to("/etc/passwd")
    (app.home / "AGENTS.md").write_text("Be brief.")
    commands = CommandHandlers(
        app.gateway,
        app.users,
        app.answers,
        defaults=replace(defaults(), workspace=str(workspace / "sub")),
        instructions=app.instructions,
    )
    message = await app.message("x")
    shown = await reply(app, commands, ChatCommand("instructions", "In euros."), message)
    assert shown.index("- the owner's `AGENTS.md`: 9 bytes\n") < shown.index(
        "- the text of this chat: 9 bytes\n"
        "- `AGENTS.md` of the working folder: 32.0 KB, 7.1 KB more are left out\n"
        "- `sub/CLAUDE.md` of the working folder: ignored, a symbolic link that is not followed\n"
    )
    assert str(workspace) not in shown
    assert "Be brief." not in shown
    chinese = message._replace(phrases=ChatPhrases("zh"))
    shown = await reply(app, commands, ChatCommand("instructions"), chinese)
    assert "- 工作文件夹的 `AGENTS.md`\uff1a32.0 KB\uff0c另有 7.1 KB 被省略" in shown
    assert "- 工作文件夹的 `sub/CLAUDE.md`\uff1a未采用\uff0c是不跟随的符号链接" in shown


async def test_a_file_that_a_command_wrote_is_named_without_its_path(
    app: EchoApp, commands: CommandHandlers
) -> None:
    run_id, _ = await app.submit("go")
    run = await app.database.read(partial(app.stores.runs.get, run_id))
    assert run is not None
    message = await app.message("x")
    unmade = await reply(app, commands, ChatCommand("instructions"), message)
    assert "working folder" not in unmade
    folder = app.home / "workspaces" / run.session_id
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Obey.")
    shown = await reply(app, commands, ChatCommand("instructions"), message)
    assert "`AGENTS.md` of the working folder: ignored, a command may have written it" in shown
    assert str(app.home) not in shown


async def test_usage_of_a_chat_without_a_session(app: EchoApp, commands: CommandHandlers) -> None:
    message = await app.message("/usage")
    assert await reply(app, commands, ChatCommand("usage"), message) == message.phrases(
        "usage_none"
    )


@pytest.mark.slow
async def test_a_code_posted_in_a_group_becomes_invalid(
    app: EchoApp, commands: CommandHandlers
) -> None:
    code = (await app.gateway.access.create_code("operate", LOCAL_OWNER, "cli")).code
    group = await app.message("/pair", "guest", "talk", is_direct=False)
    direct = await app.message("/pair", "guest", "talk")
    assert await reply(app, commands, ChatCommand("pair", code), group) == group.phrases(
        "pair_in_group", command="/pair"
    )
    assert await reply(app, commands, ChatCommand("pair", code), direct) == direct.phrases(
        "pair_wrong"
    )


async def test_a_code_pairs_a_user_with_their_name(app: EchoApp, commands: CommandHandlers) -> None:
    code = (await app.gateway.access.create_code("operate", LOCAL_OWNER, "cli")).code
    message = await app.message("/pair", "guest", "talk")
    assert await reply(app, commands, ChatCommand("pair", code), message) == message.phrases(
        "paired_operate"
    )
    [person] = await app.gateway.queries.people(LOCAL_OWNER)
    assert (person.principal, person.name) == ("echo:test:guest", "Guest")

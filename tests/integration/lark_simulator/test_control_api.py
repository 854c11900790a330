"""The control API, the chat page and the command of the simulator."""

import asyncio
import base64
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route, WebSocketRoute

from internal.agent.app.background_task import wait_shielded
from internal.simulators.lark import chat_page, user_actions
from internal.simulators.lark.cards.cardkit import add_card
from internal.simulators.lark.control.actions import ACTIONS
from internal.simulators.lark.control.api import ControlApi
from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.faults import Faults
from internal.simulators.lark.model import App, encode
from internal.simulators.lark.rest import router
from internal.simulators.lark.rest.call import RestCall, RestEndpoint
from internal.simulators.lark.rest.form_data import FormField
from internal.simulators.lark.services import LarkServices
from internal.simulators.lark.simulator import LarkSim
from internal.simulators.lark.state import LarkState
from internal.simulators.lark.websocket import endpoint
from internal.simulators.lark.websocket.connection import ClientConfig
from tests.integration.lark_simulator.cards import button, card, markdown
from tests.support.lark_sdk import Bot

STATIC = Path(chat_page.__file__).with_name("static")


async def fetch(sim: LarkSim, verb: str, path: str, **more: Any) -> requests.Response:
    """Make a request with the key, unless the headers say otherwise."""
    headers = {"authorization": f"Bearer {sim.key}", **more.pop("headers", {})}
    headers = {name: value for name, value in headers.items() if value is not None}

    def ask() -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(verb, sim.url + path, headers=headers, timeout=30, **more)

    return await asyncio.to_thread(ask)


async def act(sim: LarkSim, name: str, /, **body: Any) -> Any:
    answer = await fetch(sim, "POST", f"/_sim/{name}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(sim: LarkSim, name: str, /, **body: Any) -> str:
    answer = await fetch(sim, "POST", f"/_sim/{name}", json=body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


def paths(lark: LarkServices) -> list[tuple[str, str]]:
    """Every route there is, as a request of it."""
    api_routes = (*router.routes(lark), *endpoint.routes(lark), *ControlApi(lark, "k").routes())
    found = []
    for route in (*api_routes, *chat_page.routes()):
        path = re.sub(r"\{\w+\}", "x", route.path)
        if isinstance(route, WebSocketRoute):
            found.append(("GET", path))
        else:
            assert isinstance(route, Route)
            found += [(verb, path) for verb in sorted(route.methods or ())]
    return found


async def test_every_route_rejects_a_foreign_host(sim: LarkSim) -> None:
    every = paths(sim.lark)
    assert len(every) > 40
    port = sim.url.rpartition(":")[2]
    for verb, path in every:
        for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) + 1}"):
            answer = await fetch(sim, verb, path, headers={"host": host})
            assert answer.status_code == 421, (verb, path, host)


async def test_every_route_of_the_control_api_needs_the_key(sim: LarkSim) -> None:
    wanting = [one for one in paths(sim.lark) if one[1].startswith("/_sim/")]
    assert len(wanting) >= 5
    port = sim.url.rpartition(":")[2]
    for verb, path in wanting:
        for credential in (None, "Bearer wrong", "Bearer "):
            headers = {"authorization": credential, "cookie": f"larksim-{port}={sim.key}"}
            answer = await fetch(sim, verb, path, headers=headers, json={"key": sim.key})
            assert answer.status_code == 401, (verb, path)


async def test_cross_origin_requests_are_rejected(sim: LarkSim) -> None:
    body = {"name": "Evil"}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = await fetch(sim, "POST", "/_sim/person", json=body, headers=headers)
        assert answer.status_code == 403
    answer = await fetch(sim, "POST", "/_sim/person", data=json.dumps(body))
    assert answer.status_code == 415
    assert "Evil" not in {one.name for one in sim.people}


async def test_the_page_loads_no_foreign_resources(sim: LarkSim) -> None:
    for file in STATIC.iterdir():
        path = "/" if file.name == "index.html" else f"/{file.name}"
        answer = await fetch(sim, "GET", path, headers={"authorization": None})
        assert answer.content == file.read_bytes()
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        text = answer.text
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert not re.search(r"""(src|href|from|import)[=(\s]*["'`]https?:""", text)
        assert not re.search(r"\son\w+=[\"']|<script>|style=[\"']", text)
    assert "Simulator" in (await fetch(sim, "GET", "/")).text


@pytest.mark.slow
async def test_the_page_receives_messages_and_replies(bot: Bot, sim: LarkSim) -> None:
    person, group = sim.people[0].open_id, sim.groups[0].chat_id
    before = (await fetch(sim, "GET", "/_sim/changes")).json()
    text = "@Larkspur do it, @all"
    mentions = [bot.app.open_id, "all"]
    async with bot.listening():
        sent = await act(sim, "send", person=person, chat=group, text=text, mentions=mentions)
        await sim.until(lambda _: bot.heard)
    assert bot.texts() == ["@_user_1 do it, @_all"]
    await bot.sent(group, card(button("yes", {"k": 1})), "interactive")
    query = f"?since={before['version']}&log={before['log_number']}"
    after = (await fetch(sim, "GET", f"/_sim/changes{query}")).json()
    mine, theirs = after["messages"]
    assert mine["message_id"] == sent["message_id"]
    assert theirs["card"]["body"]["elements"][0]["name"] == "yes"
    assert theirs["sender_name"] == "Larkspur"
    assert "frame.out" in {entry["kind"] for entry in after["log"]}


async def test_polling_waits_for_the_next_change(sim: LarkSim) -> None:
    seen = (await fetch(sim, "GET", "/_sim/changes")).json()
    path = f"/_sim/changes?since={seen['version']}&log={seen['log_number']}"
    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(fetch(sim, "GET", path))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await wait_shielded(looking)
        await act(sim, "person", name="Nova")
    assert "Nova" in {one["name"] for one in looking.result().json()["people"]}


# ruff: noqa: PLR0915 - one statement for each action
async def test_every_action_of_the_page_works(bot: Bot, sim: LarkSim) -> None:
    done = set()

    async def do(name: str, /, **body: Any) -> Any:
        done.add(name)
        return await act(sim, name, **body)

    person = (await do("person", name=" Nova "))["open_id"]
    chat = (await do("group", name="Team", members=[person]))["chat_id"]
    where = {"person": person, "chat": chat}
    first = (await do("send", **where, text="first"))["message_id"]
    again = {"reply_to": first, "in_thread": True}
    second = (await do("send", **where, text="second", **again))["message_id"]
    assert sim.lark.state.messages[second].thread_id
    share = {"msg_type": "share_chat", "content": {"chat_id": chat}}
    await do("post", **where, **share)
    data = base64.b64encode(b"hello").decode()
    file = await do("upload", **where, name="a.txt", data=data)
    assert sim.lark.state.messages[file["message_id"]].msg_type == "file"
    await do("react", person=person, message=first, emoji="OK")
    assert [one.emoji for one in sim.lark.state.messages[first].reactions] == ["OK"]
    merged = (await do("merge", **where, messages=[first, second]))["message_id"]
    assert len(sim.lark.state.messages[merged].children) == 2
    await do("edit", person=person, message=first, text="edited")
    assert "edited" in sim.lark.state.messages[first].content
    await do("recall", person=person, message=first)
    await do("read", **where)
    await do("enter", **where)
    await do("menu", person=person, key="help")
    bot_message = {"app": sim.app.app_id, "chat": chat, "text": "I am a bot."}
    by_bot = (await do("bot_message", **bot_message))["message_id"]
    assert sim.lark.state.messages[by_bot].sender_type == "app"
    shown = await bot.sent(chat, card(button("yes", {"k": 1})), "interactive")
    press = {"path": ["body", "elements", 0]}
    async with bot.listening():
        bot.answer = lambda _: {"toast": {"type": "info", "content": "seen"}}
        said = await do("click", person=person, message=shown, press=press)
        assert said["toast"]["content"] == "seen"
        await do("redeliver", message=second)
        await do("event", event_type="im.message.receive_v1", event={})
        assert (await do("deafen"))["deaf"] == 1
        assert (await do("silence"))["silent"] == 1
        assert (await do("drop"))["dropped"] == 1
    await do("bot", **where, present=False)
    assert (await bot.send(chat, {"text": "x"}))[0] == 230002
    await do("bot", **where)
    await do("disband", **where)
    assert (await bot.send(chat, {"text": "x"}))[0] == 230002
    await do("revoke")
    assert (await bot.ask("GET", "/bot/v3/info"))[0] == 99991663
    await do("faults", duplicates=2, speed=10)
    assert (sim.faults.duplicates, sim.faults.speed, sim.faults.limits) == (2, 10, True)
    await do("advance", seconds=60)
    await do("down", seconds=60)
    assert sim.lark.down
    assert (await do("person", name="Lara"))["open_id"]  # the control API still works
    assert done == set(ACTIONS)


async def test_rejected_actions_return_the_reason(sim: LarkSim) -> None:
    person, stranger = sim.people[0].open_id, sim.people[1].open_id
    dm = sim.dm(person).chat_id
    where = {"person": stranger, "chat": dm}
    assert "not in this chat" in await refused(sim, "send", **where, text="x")
    assert "unknown" in await refused(sim, "send", person=person, chat=dm, text="", mentions=["x"])
    assert "parent" in await refused(sim, "send", person=person, chat=dm, text="", reply_to="x")
    assert "own" in await refused(sim, "recall", person=person, message="x")
    assert "no such message" in await refused(sim, "react", person=person, message="x", emoji="OK")
    assert "groups" in await refused(sim, "bot", person=person, chat=dm, present=False)
    assert "groups" in await refused(sim, "disband", person=person, chat=dm)
    assert "unknown id" in await refused(sim, "group", name="x", members=["y"])
    assert "1 to 60" in await refused(sim, "person", name=" ")
    assert "unknown field" in await refused(sim, "person", name="x", extra=1)
    assert "handshake" in await refused(sim, "faults", handshake="sometimes")
    assert "kind" in await refused(sim, "faults", answers=[{"kind": "x"}])
    assert "negative" in await refused(sim, "faults", speed=0)
    assert "366 days" in await refused(sim, "down", seconds=-1)
    empty = await refused(sim, "upload", person=person, chat=dm, name="x", data="")
    assert "empty" in empty
    assert (await fetch(sim, "POST", "/_sim/fly", json={})).status_code == 404
    assert (await fetch(sim, "GET", "/_sim/media/none")).status_code == 404
    for body in (b"{", b"\xff", b"[]", b""):
        headers = {"content-type": "application/json"}
        answer = await fetch(sim, "POST", "/_sim/person", data=body, headers=headers)
        assert answer.status_code == 400
    for query in ("since=x", "log=-1", "since=9999999999999999999"):
        assert (await fetch(sim, "GET", f"/_sim/changes?{query}")).status_code == 400


async def test_files_are_served_as_attachments_and_images_inline(sim: LarkSim) -> None:
    person = sim.people[0].open_id
    where = {"person": person, "chat": sim.dm(person).chat_id}
    html = base64.b64encode(b"<script>alert(1)</script>").decode()
    await act(sim, "upload", **where, name='ev"il\r\n.html', data=html)
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
    await act(sim, "upload", **where, name="a.png", data=png, kind="image")
    file, image = sim.lark.state.media.values()
    answer = await fetch(sim, "GET", f"/_sim/media/{file.key}")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="ev_il__.html"'
    answer = await fetch(sim, "GET", f"/_sim/media/{image.key}")
    assert answer.headers["content-type"] == "image/png"


async def test_malformed_bodies_and_unknown_paths_are_rejected(sim: LarkSim) -> None:
    token = sim.lark.tokens.issue(sim.app)
    headers = {"authorization": f"Bearer {token}"}
    path = "/open-apis/im/v1/messages?receive_id_type=chat_id"
    for body in (b"{", b"\xff\xfe", b"[" * 100_000, b'"x"', b"1"):
        answer = await fetch(sim, "POST", path, data=body, headers=headers)
        assert answer.json()["code"] == 9499
    assert (await fetch(sim, "GET", "/open-apis/nothing", headers=headers)).status_code == 404
    for credential in (None, "Basic x", "Bearer", "Bearer t-unknown"):
        answer = await fetch(sim, "POST", path, headers={"authorization": credential})
        assert answer.json()["code"] in {99991661, 99991663}
        assert answer.status_code == 400


async def test_the_simulator_listens_on_localhost_only(sim: LarkSim) -> None:
    port = int(sim.url.rpartition(":")[2])
    with socket.socket(socket.AF_INET6) as other:
        assert other.connect_ex(("::1", port)) != 0
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.2", port)) != 0


async def test_the_simulator_stops_while_clients_wait() -> None:
    async with asyncio.timeout(10):
        async with LarkSim([App("cli_ending", "secret")]) as sim:
            sim.set_faults(discovery="hang")
            await sim.send_text(sim.people[0], sim.dm(sim.people[0]), "nobody hears")
            await sim.until(lambda _: sim.pushes[0].attempts)
            seen = (await fetch(sim, "GET", "/_sim/changes")).json()
            path = f"/_sim/changes?since={seen['version']}&log={seen['log_number']}"
            where = {"AppID": "cli_ending", "AppSecret": "secret"}
            waiting = [
                asyncio.create_task(fetch(sim, "GET", path)),
                asyncio.create_task(fetch(sim, "POST", "/callback/ws/endpoint", json=where)),
            ]
        for one in waiting:
            with pytest.raises(requests.ConnectionError):
                await one


def test_the_command_prints_its_addresses_and_stops_on_a_signal(environ: dict[str, str]) -> None:
    code = (
        "import sys; from larkspur.lark_simulator import simulate_lark;"
        " sys.exit(simulate_lark(0, None, 'hush'))"
    )
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout
        lines = [running.stdout.readline() for _ in range(5)]
        assert "simulator" in lines[0]
        url = lines[2].split()[1]
        assert lines[1].split()[2].startswith(f"{url}/#key=")
        assert lines[3:] == ["app id      cli_larksim\n", "app secret  hush\n"]
        body = {"app_id": "cli_larksim", "app_secret": "hush"}
        answer = requests.post(
            f"{url}/open-apis/auth/v3/tenant_access_token/internal", json=body, timeout=20
        )
        assert answer.json()["code"] == 0
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0
        assert running.stderr
        assert running.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("PORT", "in use"),
        ("99999", "--port"),
        ("0, ''", "not blank"),
        ("0, 'a', 'geheimniß'", "ASCII"),
    ],
)
@pytest.mark.first_rows(1)
def test_the_command_rejects_invalid_arguments_with_a_message(
    environ: dict[str, str], arguments: str, said: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        arguments = arguments.replace("PORT", str(taken.getsockname()[1]))
        code = f"from larkspur.lark_simulator import simulate_lark; simulate_lark({arguments})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.stderr.splitlines()[-1].startswith("internal.channels.cli.exit_codes.CliExit: ")
    assert said in done.stderr.splitlines()[-1]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *("actions", "card", "card_id", "content", "data", "element", "elements", "emoji_type"),
        *("message_id", "msg_type", "partial_element", "reaction_type", "receive_id", "sequence"),
        *("reply_in_thread", "settings", "target_element_id", "token", "type", "uuid"),
    ]
)
TEXTS = st.sampled_from(
    ["card_json", "text", "post", "interactive", "append", "{}", "[]", '{"a":1}']
)
BODIES = st.dictionaries(FIELDS, ANYTHING | TEXTS | st.builds(json.dumps, ANYTHING), max_size=8)


EACH_ENDPOINT = pytest.mark.parametrize(
    "endpoint", router.ENDPOINTS, ids=lambda one: f"{one.method} {one.path}"
)


@EACH_ENDPOINT
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
@pytest.mark.first_rows(6)
def test_any_body_gets_a_result_or_an_error(endpoint: RestEndpoint, data: st.DataObject) -> None:
    call_with_any_body(endpoint, data)


@pytest.mark.slow
@EACH_ENDPOINT
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_of_many_bodies_gets_a_result_or_an_error(
    endpoint: RestEndpoint, data: st.DataObject
) -> None:
    call_with_any_body(endpoint, data)


def call_with_any_body(endpoint: RestEndpoint, data: st.DataObject) -> None:
    """Call an endpoint with a drawn body; another exception than an error of Lark is raised."""
    app = App("cli_fuzz", "secret")
    state = LarkServices([app], Faults(limits=False), ClientConfig()).state
    state.limits.on = False
    person = next(iter(state.people))
    chat = state.dm(person).chat_id
    message = user_actions.send(state, person, chat, user_actions.text_draft(state, "hi"))
    shown = add_card(state, app.app_id, card(markdown("x", "x"), streaming_mode=True))
    known = {
        "message_id": message.message_id,
        "card_id": shown.card_id,
        "element_id": "x",
        "chat_id": chat,
        "user_id": person,
    }
    query = {"receive_id_type": "chat_id", "container_id_type": "chat", "type": "file"}
    query |= data.draw(st.dictionaries(st.sampled_from(["page_size", "page_token"]), st.text()))
    body = {"receive_id": chat, "sequence": 1, **data.draw(BODIES)}
    path = {name: known.get(name, "x") for name in re.findall(r"\{(\w+)\}", endpoint.path)}
    form = {
        "image_type": FormField(b"message"),
        "image": FormField(data.draw(st.binary(max_size=9))),
    }
    with suppress(LarkError):
        endpoint.handler(state, RestCall(app, path, query, body, form))
    changes_of(state)


def changes_of(state: LarkState) -> None:
    """Encode all stored data."""
    for message in state.messages.values():
        encode(message.public())
        encode(state.shown_card(message))

from internal.simulators.lark import chat_page, user_actions
from tests.unit.simulators.lark import make_services


def test_every_static_file_has_a_route() -> None:
    paths = {route.path for route in chat_page.routes()}
    assert {"/", "/app.js", "/style.css"} <= paths


def test_only_messages_after_the_given_version_are_returned() -> None:
    services = make_services()
    state = services.state
    person = next(iter(state.people))
    chat = state.dm(person).chat_id
    user_actions.send(state, person, chat, user_actions.text_draft(state, "one"))
    before = state.version
    user_actions.send(state, person, chat, user_actions.text_draft(state, "two"))
    changes = chat_page.changes_since(services, before, 0)
    assert [message["body"]["content"] for message in changes["messages"]] == ['{"text":"two"}']
    assert changes["simulator"] is True

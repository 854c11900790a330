from internal.simulators.lark.model import App, ChatMessage, Person, encode, new_id


def test_ids_have_a_prefix_and_differ() -> None:
    assert new_id("om").startswith("om_")
    assert new_id("om") != new_id("om")


def test_lone_surrogates_become_question_marks() -> None:
    assert encode({"a": "\ud800"}) == b'{"a":"?"}'


def test_the_bot_of_an_app_keeps_its_open_id() -> None:
    assert App("cli_1", "a").open_id == App("cli_1", "b").open_id != App("cli_2", "a").open_id


def test_a_recalled_message_hides_its_content() -> None:
    message = ChatMessage("om_1", "oc_1", "ou_1", "user", "text", '{"text":"secret"}', 1)
    message.mentions = [{"key": "@_user_1", "id": {"open_id": "ou_2"}, "name": "Two"}]
    assert message.public()["body"]["content"] == '{"text":"secret"}'
    assert message.public()["mentions"][0]["id"] == "ou_2"
    message.deleted = True
    assert "secret" not in str(message.public())


def test_a_person_has_three_ids() -> None:
    assert Person("ou", "u", "on", "Mei").ids() == {
        "open_id": "ou",
        "user_id": "u",
        "union_id": "on",
    }

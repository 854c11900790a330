"""People in the loop on the page: the decision bar by keyboard alone, and Waiting."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from internal.skills.library import read_skill
from tests.browser.gateway import Gateway
from tests.support.anthropic_server import Call, Fault, Reply, When
from tests.support.page_in_browser import PHONE, Open, Serve, accessible, send, session_of, status
from tests.support.question_bar import GOAL, bar, planned, shell, when
from tests.support.skills import write_skill

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

STEPS = ["Tag the commit", "Build the wheels", "Write the notes"]


def asks(results: int, question: str, *options: str, multiple: bool = False) -> Reply:
    given = {"question": question, "options": list(options), "multiple": multiple}
    return Reply(calls=[Call("request_user", given)], when=when(results))


def press(page: Page, key: str, label: str) -> None:
    """Make a choice by its key, once it can be made."""
    expect(bar(page).get_by_role("button", name=label, exact=True)).to_be_enabled()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(key)


def bodies(gateway: Gateway, session: str, name: str) -> list[dict[str, Any]]:
    rows = gateway.events(session)
    return [row["event"]["payload"] for row in rows if row["event"]["event"] == name]


def answers(gateway: Gateway, session: str) -> list[dict[str, Any]]:
    return bodies(gateway, session, "workflow.question.answered")


def tools(gateway: Gateway, session: str) -> list[str]:
    """The commands that ran."""
    started = bodies(gateway, session, "workflow.tool.started")
    return [one["arguments"]["command"] for one in started if one["tool_name"] == "shell"]


def open_question(gateway: Gateway) -> dict[str, Any]:
    found: list[dict[str, Any]] = gateway.ask("GET", "/api/questions?status=open")["questions"]
    assert len(found) == 1
    return found[0]


@pytest.mark.slow
def test_permissions_by_keyboard_alone(serve: Serve, script: Any, enter: Open) -> None:
    model = script(
        [
            planned(),
            shell("touch one", 1),
            shell("touch two", 2),
            Reply(text="All said.", when=when(3)),
        ]
    )
    page = enter(gateway := serve(model))
    send(page, "touch them")
    expect(bar(page).get_by_role("heading", name="Run this command?")).to_be_visible()
    command = bar(page).get_by_label("What shell would run")
    expect(command).to_have_text("touch one")
    expect(bar(page)).to_contain_text("Operators can answer")
    expect(bar(page)).to_contain_text("expires in 24 hours")
    status(page, "waiting")
    accessible(page)
    # a letter in the composer is a letter
    page.get_by_label("Message", exact=True).focus()
    page.keyboard.type("nny")
    expect(page.get_by_label("Message", exact=True)).to_have_value("nny")
    press(page, "y", "Allow once")
    expect(command).to_have_text("touch two")
    press(page, "n", "Deny")
    status(page, "completed")
    session = session_of(page)
    assert tools(gateway, session) == ["touch one"]
    given = answers(gateway, session)
    assert [one["decision"] for one in given] == ["approve", "reject"]
    thread = page.get_by_test_id("thread")
    asked = thread.get_by_role("button", name=re.compile("Run this command"))
    expect(asked).to_have_count(2)
    expect(asked.nth(0)).to_contain_text("allowed once")
    # answered questions stay answered
    page.reload()
    expect(thread.get_by_text("All said.")).to_be_visible()
    expect(bar(page)).to_have_count(0)


@pytest.mark.slow
def test_rules_and_single_calls_by_keyboard(serve: Serve, script: Any, enter: Open) -> None:
    pair = [Call("shell", {"command": f"touch {name}"}) for name in ("five", "six")]
    model = script(
        [
            planned(),
            shell("touch four", 1),
            Reply(calls=pair, when=when(2)),
            Reply(text="All said.", when=when(4)),
        ]
    )
    page = enter(gateway := serve(model))
    send(page, "touch them")
    press(page, "p", "Always allow touch four…")
    field = bar(page).get_by_label("Rules, one per line")
    expect(field).to_be_focused()
    expect(field).to_have_value("shell(touch four)")
    accessible(page)
    field.fill("shell(touch")
    page.keyboard.press("Enter")
    expect(bar(page).get_by_role("alert")).to_contain_text("rule")
    field.fill("shell(touch four *)")
    page.keyboard.press("Enter")
    expect(bar(page).get_by_role("heading", name="Run 2 commands?")).to_be_visible()
    expect(bar(page).get_by_role("button", name="once")).to_be_enabled()
    page.keyboard.press("2")
    expect(bar(page).get_by_role("checkbox").nth(1)).not_to_be_checked()
    accessible(page)
    press(page, "y", "Allow 1 of 2 once")
    status(page, "completed")
    session = session_of(page)
    assert tools(gateway, session) == ["touch four", "touch five"]
    first, second = answers(gateway, session)
    assert (first["grant"], first["rules"]) == ("rule", ["shell(touch four *)"])
    assert sorted(second["items"].values()) == [False, True]


@pytest.mark.slow
def test_a_rejection_can_carry_a_reason(serve: Serve, script: Any, enter: Open) -> None:
    model = script([planned(), shell("touch one", 1), Reply(text="Done.", when=when(2))])
    page = enter(gateway := serve(model))
    send(page, "touch it")
    press(page, "e", "Deny with a reason…")
    reason = bar(page).get_by_label("Reason")
    expect(reason).to_be_focused()
    # Esc leaves the field, and the run alone
    page.keyboard.press("Escape")
    expect(reason).to_have_count(0)
    press(page, "e", "Deny with a reason…")
    expect(reason).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("yes, but not now")
    expect(reason).to_have_value("yes, but not now")
    accessible(page)
    page.keyboard.press("Enter")
    status(page, "completed")
    expect(bar(page)).to_have_count(0)
    session = session_of(page)
    assert tools(gateway, session) == []
    assert [one["text"] for one in answers(gateway, session)] == ["yes, but not now"]
    told = page.get_by_test_id("thread").get_by_role("button", name=re.compile("Run this command"))
    expect(told).to_contain_text("denied: yes, but not now")


@pytest.mark.slow
def test_a_message_answers_the_question_above_it(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    again = Call("plan", {"goal": "A smaller release", "steps": ["Tag it"]})
    model = script(
        [
            Reply(text="It is noon.", when=When(last_user="what time")),
            planned(),
            Reply(calls=[again], when=when(1)),
            shell("touch one", 2),
            shell("touch two", 3),
            asks(4, "Which colour?", "red", "green"),
            Reply(text="All said.", when=when(5)),
        ]
    )
    page = enter(gateway := serve(model))
    page.get_by_role("button", name="Review the plan first").click()
    send(page, "touch them")
    message = page.get_by_label("Message", exact=True)

    def say(asked: str, hint: str, text: str) -> None:
        expect(bar(page)).to_contain_text(asked)
        expect(bar(page).get_by_role("button").first).to_be_enabled()
        expect(message).to_have_attribute("placeholder", hint)
        send(page, text)

    say(GOAL, "Type yes, or what to change…", "make it smaller")
    say("A smaller release", "Type yes, or what to change…", "go ahead")
    say("touch one", "Type yes or no, or what to do instead…", "no, touch two instead")
    # an own control starts another task, and the question stays open
    expect(bar(page)).to_contain_text("touch two")
    expect(message).to_have_value("")
    expect(bar(page).get_by_role("heading", name="Run this command?")).to_be_visible()
    message.fill("what time is it")
    expect(page.get_by_role("button", name="Answer", exact=True)).to_be_enabled()
    accessible(page)
    page.screenshot(path=shots / "answer-in-composer.png")
    page.get_by_role("button", name="New task", exact=True).click()
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("It is noon.")).to_be_visible()
    say("touch two", "Type yes or no, or what to do instead…", "ok")
    say("Which colour?", "Type your answer…", "2")
    expect(thread.get_by_text("All said.")).to_be_visible()
    session = session_of(page)
    assert tools(gateway, session) == ["touch two"]
    given = [(one["decision"], one.get("text", "")) for one in answers(gateway, session)]
    assert given == [
        ("text", "make it smaller"),
        ("approve", ""),
        ("reject", "no, touch two instead"),
        ("approve", ""),
        ("text", "green"),
    ]


@pytest.mark.slow
def test_a_text_from_before_the_question_does_not_answer_it(
    serve: Serve, script: Any, enter: Open
) -> None:
    touch = Call("shell", {"command": "touch one"})
    model = script(
        [
            planned(),
            Reply(calls=[touch], hold="touch", when=when(1)),
            Reply(text="All said.", when=when(2)),
        ]
    )
    page = enter(gateway := serve(model))
    send(page, "touch it")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    message = page.get_by_label("Message", exact=True)
    message.fill("ok")
    model.release("touch")
    expect(bar(page)).to_contain_text("touch one")
    expect(bar(page).get_by_role("button").first).to_be_enabled()
    message.press("Enter")
    refusal = "This was written before the question: nothing was allowed. Send it again to answer."
    expect(page.get_by_role("alert")).to_have_text(refusal)
    expect(message).to_have_value("ok")
    assert open_question(gateway)["status"] == "open"
    message.press("Enter")
    expect(page.get_by_test_id("thread").get_by_text("All said.")).to_be_visible()
    assert tools(gateway, session_of(page)) == ["touch one"]


@pytest.mark.slow
def test_a_session_is_allowed_with_one_key(serve: Serve, script: Any, enter: Open) -> None:
    model = script(
        [planned(), shell("touch one", 1), shell("touch one", 2), Reply(text="Done.", when=when(3))]
    )
    page = enter(gateway := serve(model))
    send(page, "touch it twice")
    press(page, "a", "Allow for this session")
    status(page, "completed")
    session = session_of(page)
    assert tools(gateway, session) == ["touch one"] * 2
    assert [one["grant"] for one in answers(gateway, session)] == ["session"]


@pytest.mark.slow
def test_a_plan_by_keyboard_alone(serve: Serve, script: Any, enter: Open) -> None:
    model = script(
        [
            Reply(
                calls=[Call("plan", {"goal": GOAL, "steps": STEPS})],
                when=When(last_result="French"),
            ),
            planned(steps=STEPS[:2]),
            Reply(text="Published.", when=When(last_result="agreed")),
            Reply(text="Published."),
        ]
    )
    page = enter(gateway := serve(model))
    page.get_by_role("button", name="Review the plan first").click()
    send(page, "publish it")
    expect(bar(page).get_by_role("heading", name="Approve this plan?")).to_be_visible()
    expect(bar(page)).to_contain_text(STEPS[1])
    accessible(page)
    press(page, "f", "Request changes…")
    expect(bar(page).get_by_label("Changes to the plan")).to_be_focused()
    page.keyboard.type("notes in French as well")
    page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text(STEPS[2])
    press(page, "e", "Edit")
    expect(bar(page).get_by_label("Step 1", exact=True)).to_be_focused()
    accessible(page)
    page.keyboard.press("End")
    page.keyboard.type(", signed")
    page.keyboard.press("Enter")
    expect(bar(page).get_by_label("Step 2", exact=True)).to_be_focused()
    page.keyboard.type("Push the tag")
    page.keyboard.press("Alt+ArrowUp")
    expect(bar(page).get_by_label("Step 1", exact=True)).to_have_value("Push the tag")
    page.keyboard.press("Control+Enter")
    # a plan that was changed is the next version, and is agreed to like any other
    expect(bar(page).get_by_role("listitem").first).to_contain_text("Push the tag")
    press(page, "y", "Approve")
    status(page, "completed")
    session = session_of(page)
    plans = bodies(gateway, session, "workflow.plan.updated")
    newest = [step["description"] for step in plans[-1]["steps"]]
    assert (plans[-1]["version"], newest) == (
        3,
        ["Push the tag", "Tag the commit, signed", *STEPS[1:]],
    )
    assert [one["decision"] for one in answers(gateway, session)] == ["text", "edit", "approve"]
    assert len({row["event"]["run_id"] for row in gateway.events(session)}) == 1


@pytest.mark.slow
def test_a_rejected_plan_ends_the_run(serve: Serve, script: Any, enter: Open) -> None:
    page = enter(gateway := serve(script([planned(steps=STEPS), Reply(text="Published.")])))
    page.get_by_role("button", name="Review the plan first").click()
    send(page, "publish it")
    press(page, "n", "Reject…")
    expect(bar(page).get_by_label("Note (optional)")).to_be_focused()
    page.keyboard.type("not this week")
    page.keyboard.press("Enter")
    status(page, "cancelled")
    expect(bar(page)).to_have_count(0)
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_role("button", name="Approve this plan?")).to_contain_text(
        "rejected: not this week"
    )
    assert tools(gateway, session_of(page)) == []


def test_questions_by_keyboard_alone(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    model = script(
        [
            planned(),
            asks(1, "Which channel?", "stable", "beta"),
            asks(2, "Which systems?", "Linux", "macOS", "Windows", multiple=True),
            asks(3, "What is it called?"),
            asks(4, "Shall I go on?"),
            Reply(text="Thank you.", when=when(5)),
        ]
    )
    page = enter(gateway := serve(model))
    send(page, "publish it")
    expect(bar(page).get_by_role("heading", name="Which channel?")).to_be_visible()
    accessible(page)
    press(page, "2", "beta")
    expect(bar(page).get_by_role("heading", name="Which systems?")).to_be_visible()
    linux = bar(page).get_by_role("checkbox", name="Linux")
    expect(linux).to_be_enabled()
    page.keyboard.press("1")
    expect(linux).to_be_checked()
    page.keyboard.press("3")
    expect(bar(page).get_by_role("checkbox", name="Windows")).to_be_checked()
    system = bar(page).get_by_role("checkbox", name="macOS")
    page.keyboard.press("2")
    expect(system).to_be_checked()
    page.keyboard.press("2")
    expect(system).not_to_be_checked()
    accessible(page)
    page.screenshot(path=shots / "question-options.png")
    page.keyboard.press("Enter")
    expect(bar(page).get_by_role("heading", name="What is it called?")).to_be_visible()
    press(page, "Enter", "Yes, continue")
    expect(bar(page).get_by_label("Your answer")).to_be_focused()
    page.keyboard.type("Skylark y n 1")
    page.keyboard.press("Enter")
    expect(bar(page).get_by_role("heading", name="Shall I go on?")).to_be_visible()
    press(page, "y", "Yes, continue")
    status(page, "completed")
    given = answers(gateway, session_of(page))
    assert [one.get("text", "") for one in given][:3] == ["beta", "Linux; Windows", "Skylark y n 1"]
    assert given[3]["decision"] == "approve"


@pytest.mark.slow
def test_a_skill_is_reviewed_in_a_question_for_the_owner(
    home: Path, serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    sha256 = read_skill(write_skill(home)).sha256
    review = Call("review_skill", {"name": "bird-song", "sha256": sha256})
    replies = [
        planned(),
        Reply(calls=[review], when=when(1)),
        Reply("They sing.", when=when(2)),
    ]
    page = enter(serve(script(replies)))
    send(page, "write down the songs")
    expect(bar(page).get_by_role("heading", name="Trust bird-song?")).to_be_visible()
    shown = bar(page).get_by_label("Proposed change")
    for text in ("Skill bird-song (home folder): not reviewed", "sing.sh", "Listen first."):
        expect(shown).to_contain_text(text)
    expect(bar(page)).to_contain_text("The owner can answer")
    expect(bar(page)).to_contain_text("the agent follows bird-song from then on")
    accessible(page)
    page.screenshot(path=shots / "question-skill.png")
    press(page, "y", "Trust")
    status(page, "completed")
    expect(page.get_by_test_id("thread").get_by_text("They sing.")).to_be_visible()


@pytest.mark.slow
def test_an_interrupted_run_is_retried_with_advice(serve: Serve, script: Any, enter: Open) -> None:
    overloaded = Fault("status", message="Overloaded", times=2)
    model = script([Reply(text="Thank you.", fault=overloaded)])
    page = enter(gateway := serve(model, LLM__MAX_RETRIES="0"))
    send(page, "publish it")
    expect(bar(page).get_by_role("heading", name="The model is overloaded.")).to_be_visible()
    accessible(page)
    press(page, "y", "Retry")
    expect(bar(page).get_by_role("button", name="Give up")).to_be_enabled()
    bar(page).get_by_label("Your answer").fill("use less")
    page.keyboard.press("Enter")
    status(page, "completed")
    given = answers(gateway, session_of(page))
    assert [(one["decision"], one.get("text")) for one in given] == [
        ("approve", None),
        ("text", "use less"),
    ]


@pytest.mark.slow
def test_an_answer_given_elsewhere_is_shown(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    model = script([planned(), shell("touch one", 1), Reply(text="Done.", when=when(2))])
    page = enter(gateway := serve(model))
    send(page, "touch it")
    expect(bar(page).get_by_role("button", name="once")).to_be_enabled()
    # reloading keeps what waits
    page.reload()
    expect(bar(page).get_by_label("What shell would run")).to_have_text("touch one")
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    question = open_question(gateway)["question_id"]
    gateway.ask("POST", f"/api/questions/{question}/answer", {"decision": "reject", "text": "no!"})
    expect(bar(page)).to_contain_text("via the web page · denied: no!")
    expect(bar(page)).to_contain_text(re.compile("Answered by .+"))
    page.screenshot(path=shots / "question-answered.png")
    expect(bar(page).get_by_role("button")).to_have_count(0)
    status(page, "completed")
    expect(page).to_have_title(re.compile(r"^touch it|^Publish"))
    expect(bar(page)).to_have_count(0)


@pytest.mark.slow
def test_a_late_answer_shows_the_rejection(serve: Serve, script: Any, enter: Open) -> None:
    model = script(
        [
            planned(),
            shell("touch one", 1),
            Reply(text="Done.", hold="done", when=when(2)),
        ]
    )
    page = enter(gateway := serve(model))
    send(page, "touch it")
    expect(bar(page).get_by_role("button", name="once")).to_be_enabled()
    question = open_question(gateway)["question_id"]

    def answer_first(late: Route) -> None:
        gateway.ask("POST", f"/api/questions/{question}/answer", {"decision": "approve"})
        late.continue_()

    page.route("**/answer", answer_first)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("n")
    expect(bar(page)).to_contain_text("Answered by")
    model.release("done")
    status(page, "completed")
    assert tools(gateway, session_of(page)) == ["touch one"]


@pytest.mark.slow
def test_the_waiting_page_lists_the_questions_of_all_sessions(
    serve: Serve, script: Any, enter: Open
) -> None:
    model = script(
        [
            planned("first"),
            shell("touch first", 1, "first"),
            planned("second"),
            Reply(
                calls=[Call("request_user", {"question": "Which colour?", "options": ["red"]})],
                when=when(1, "second"),
            ),
            Reply(text="Done."),
        ]
    )
    gateway = serve(model)
    page = enter(gateway)
    link = page.locator('a[href="/waiting"]')
    expect(link).to_have_text("Waiting")
    first = gateway.task("the first task")["session_id"]
    expect(link).to_have_text("Waiting1")
    second = gateway.task("the second task")["session_id"]
    expect(link).to_have_text("Waiting2")
    expect(page).to_have_title("(2) Larkspur")
    link.click()
    page.wait_for_url("**/waiting")
    main = page.get_by_role("main")
    # the newest one is open; the other one is a line
    expect(main.get_by_role("button", name="red")).to_be_enabled()
    expect(main.get_by_role("link", name="> the second task")).to_have_attribute(
        "href", f"/sessions/{second}"
    )
    accessible(page)
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(main.get_by_role("button", name="once")).to_be_enabled()
    page.keyboard.press("y")
    expect(link).to_have_text("Waiting1")
    expect(main.get_by_role("button", name="red")).to_be_enabled()
    page.keyboard.press("1")
    expect(main.get_by_text("No open questions")).to_be_visible()
    expect(page).to_have_title("Waiting · Larkspur")
    accessible(page)
    assert tools(gateway, first) == ["touch first"]
    assert [one["text"] for one in answers(gateway, second)] == ["red"]


@pytest.mark.slow
def test_hostile_questions_are_harmless_and_readable(
    serve: Serve, script: Any, enter: Open, shots: Path
) -> None:
    evil = "<img src=x onerror='window.ran=1'>"
    lines = "\n".join(f"echo {n}" for n in range(5_000))
    sly = "rm -rf \u202e/tmp/x\u202c build \x1b[2K\u200b # " + evil
    model = script(
        [
            planned(),
            shell(sly, 1),
            shell(lines, 2),
            asks(3, f"{evil} \u202e?", evil, "<b>bold</b>"),
            Reply(text="Done.", when=when(4)),
        ]
    )
    page = enter(serve(model))
    send(page, "be evil")
    box = bar(page).get_by_label("What shell would run")
    expect(box).to_contain_text("onerror")
    shown = box.inner_text()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", shown)
    assert "202e" in shown.lower()
    accessible(page)
    page.screenshot(path=shots / "question-hostile.png")
    press(page, "n", "Deny")
    expect(box).to_contain_text("echo 1\n")
    expect(bar(page)).to_contain_text(re.compile(r"\d+ lines. Scroll to read"))
    height = bar(page).bounding_box()
    assert height is not None
    assert height["height"] < 600
    expect(bar(page).get_by_role("button", name="Deny", exact=True)).to_be_in_viewport()
    page.screenshot(path=shots / "question-long.png")
    press(page, "n", "Deny")
    expect(bar(page).get_by_role("button", name="<b>bold</b>")).to_be_enabled()
    expect(bar(page).locator("img, b")).to_have_count(0)
    expect(bar(page).locator("h2")).to_have_css("unicode-bidi", "isolate")
    page.keyboard.press("2")
    status(page, "completed")
    assert page.evaluate("window.ran") is None


@pytest.mark.slow
def test_a_long_question_scrolls_inside_the_bar(serve: Serve, script: Any, enter: Open) -> None:
    words = "Which of these <b>many</b> words do you mean?\n\n" * 60
    page = enter(serve(script([planned(), asks(1, words), Reply(text="Done.", when=when(2))])))
    send(page, "ask me")
    expect(bar(page).get_by_role("heading", name="Question")).to_be_visible()
    expect(bar(page).get_by_role("button", name="decline")).to_be_in_viewport()
    expect(bar(page).get_by_role("region", name="Question")).to_contain_text("<b>many</b>")
    accessible(page)
    press(page, "n", "Decline")
    status(page, "completed")


NOTES = """\
# Release 2.4

- Starts in half the time.
- Answers arrive by the word.
- Permissions can be written as rules.
"""


def pictured(results: int) -> Reply:
    """A command and a change of a file, asked about at once."""
    command = "git push --tags origin main && python -m build --wheel --outdir dist/release-2.4"
    written = {"path": "notes.md", "content": NOTES}
    calls = [Call("shell", {"command": command}), Call("write_file", written)]
    return Reply(text="The tag is set; now the wheels.", calls=calls, when=when(results, "release"))


@pytest.mark.slow
def test_screenshots_of_questions(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    model = script(
        [
            planned("release", STEPS),
            pictured(1),
            planned("logs", ["Read the logs"]),
            Reply(
                calls=[
                    Call(
                        "request_user",
                        {
                            "question": "Which of these logs count?",
                            "options": ["the gateway", "the workers", "both, since midnight"],
                        },
                    )
                ],
                when=when(1, "logs"),
            ),
            planned("rivals", ["Collect the prices", "Compare them", "Write the report"]),
            Reply(text="Done."),
        ]
    )
    gateway = serve(model)
    gateway.task("Summarise the logs of tonight")
    gateway.task("Compare the prices of our rivals", plan_review="always")
    page = enter(gateway, color_scheme="light")
    send(page, "publish the release, with notes")
    expect(bar(page).get_by_role("button", name="once")).to_be_enabled()
    expect(page).to_have_title(re.compile(r"^\(3\) "))
    accessible(page)
    page.mouse.move(700, 5)
    page.screenshot(path=shots / "question.png")
    page.emulate_media(color_scheme="dark")
    accessible(page)
    page.screenshot(path=shots / "question-dark.png")
    page.get_by_role("link", name="Waiting").first.click()
    main = page.get_by_role("main")
    expect(main.get_by_role("button", name="once")).to_be_enabled()
    accessible(page)
    page.screenshot(path=shots / "waiting-dark.png")
    page.get_by_role("button", name="中文").click()
    main.get_by_role("button", name="批准这份计划").click()
    expect(main.get_by_role("button", name="批准", exact=True)).to_be_enabled()
    page.emulate_media(color_scheme="light")
    accessible(page)
    page.screenshot(path=shots / "waiting-zh.png")
    main.get_by_role("button", name="编辑", exact=True).click()
    page.screenshot(path=shots / "plan-edit-zh.png")


@pytest.mark.slow
def test_questions_on_a_phone(serve: Serve, script: Any, enter: Open, shots: Path) -> None:
    page = enter(serve(script([planned("release", STEPS), pictured(1)])), **PHONE)
    page.get_by_role("button", name="Review the plan first").click()
    send(page, "publish the release, with notes")
    approve = bar(page).get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_enabled()
    accessible(page)
    page.screenshot(path=shots / "phone-plan.png")
    approve.click()
    expect(bar(page).get_by_role("button", name="once")).to_be_enabled()
    expect(bar(page).get_by_role("button", name="Deny", exact=True)).to_be_in_viewport()
    accessible(page)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page scrolls sideways"
    page.screenshot(path=shots / "phone-question.png")

"""What a run gets to know of the earlier runs of its session."""

from pathlib import Path

from tests.support.agent_app import core
from tests.support.anthropic_server import Call, Reply, Rules, When

NO_GATES = {"LARKSPUR_AGENT__GATES": "off"}


async def test_overlapping_runs_with_the_same_call_ids_leave_a_valid_session(home: Path) -> None:
    repeated = "call_1"
    look = Call("list_dir", {}, id=repeated)
    ask = Call("request_user", {"question": "Which pond?"}, id=repeated)
    rules = Rules(
        [
            Reply(text="The north one.", when=When(last_user="ask", results=3)),
            Reply(calls=[look, look], when=When(last_user="ask", last_result="North")),
            Reply(calls=[ask], when=When(last_user="ask")),
            Reply(text="It is empty.", when=When(last_user="look", results=1)),
            Reply(calls=[look], when=When(last_user="look")),
            Reply(text="Both.", when=When(last_user="both?")),
        ]
    )
    async with core(home, rules, NO_GATES) as here:
        waiting = await here.submit("ask")
        question = await here.asked(waiting)
        other = await here.submit("look", waiting.session_id)
        await here.end_of(other)
        await here.answer(question["question_id"], "text", "North")
        await here.end_of(waiting)
        last = await here.submit("both?", waiting.session_id)
        ended = (await here.end_of(last))[-1]["payload"]
        assert (ended["stop_reason"], ended["final_answer"]) == ("final_answer", "Both.")
        sent = [
            block["id"]
            for message in here.model.requests[-1]["messages"]
            if not isinstance(message["content"], str)
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        assert len(sent) == len(set(sent)) == 4

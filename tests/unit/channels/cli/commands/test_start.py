"""One-shot tasks without a command."""

from tests.support.command_runner import CommandRunner


def test_answer_is_printed(run: CommandRunner) -> None:
    shot = run.local("-p", "what is 6*7")
    assert shot.code == 0
    assert "42" in shot.out


def test_resume_without_an_id_lists_the_sessions(run: CommandRunner) -> None:
    task = run.ask("what is 6*7")
    listed = run.local("-p", "x", "-r")
    assert listed.code == 2
    assert task["session_id"] in listed.err


def test_prompt_must_be_one_argument(run: CommandRunner) -> None:
    assert run.local("-p", "one", "two").message == (
        "Quote the whole prompt: two is a second argument."
    )


def test_detach_needs_a_running_gateway(run: CommandRunner) -> None:
    shot = run.local("-p", "hello", "--detach")
    assert (shot.code, "larkspur serve" in shot.message) == (1, True)

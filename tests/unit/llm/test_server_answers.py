"""Judgement of an address by its answers: error bodies as servers and proxies send them."""

import pytest

from internal.llm.server_answers import is_page, is_wrong_address, judge

HTML = {"content-type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, {}, {"detail": "Not Found"}),  # FastAPI: vLLM, LiteLLM
        (404, {}, {"error": {"message": "Invalid URL (POST /chat/completions)"}}),  # OpenAI
        (404, {}, {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}}),
        (404, {}, {"status": 404, "error": "Not Found", "path": "/chat/completions"}),  # Spring
        (404, {}, {"message": "no Route matched with those values"}),  # Kong
        (404, {}, "404 page not found"),  # Go: Ollama
        (404, HTML, "<html><center><h1>404 Not Found</h1></center></html>"),
        (405, {}, {"detail": "Method Not Allowed"}),
        (200, {}, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
        (302, {"location": "/login"}, ""),
        (403, HTML, "<!doctype html><title>Sign in</title>"),
    ],
)
def test_what_is_no_model_server_is_recognised(
    status: int, headers: dict[str, str], body: object
) -> None:
    assert is_wrong_address(status, headers, body)
    assert not judge(status, headers, body).is_served


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
        (404, {"error": {"type": "not_found_error", "message": "model: claude-x"}}),
        (404, {"error": "model 'x' not found, try pulling it first"}),  # Ollama
        (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment is gone"}}),
        (404, {"error": {"message": "模型不存在"}}),
        (400, {"error": {"message": "messages: Field required"}}),
        (401, {"error": {"message": "Incorrect API key"}}),
        (500, "oops"),
        (429, "slow down"),
    ],
)
def test_what_a_model_server_refuses_is_not_its_address(status: int, body: object) -> None:
    assert not is_wrong_address(status, {}, body)


def test_a_gateway_that_fails_is_no_wrong_address() -> None:
    assert not is_wrong_address(502, HTML, "<html><title>502 Bad Gateway</title></html>")


def test_a_stream_that_is_called_html_is_no_page() -> None:
    assert not is_page('data: {"choices": []}\n\n', "text/html")
    assert not is_page('{"choices": []}', "text/html")
    assert is_page("Please sign in", "text/html")


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (401, {}, {"message": "no key"}, "key"),
        (401, {"www-authenticate": 'Basic realm="x"'}, {"message": "no"}, "login"),
        (401, {}, "Unauthorized", "login"),
        (200, {}, {"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "key"),
        (400, {}, "The plain HTTP request was sent to HTTPS port", "no_tls"),
        (500, {}, {"error": {"message": "KeyError: messages"}}, "taken"),
        (503, {}, {"error": {"message": "loading"}}, "failing"),
        (422, {}, {"detail": [{"msg": "field required"}]}, "taken"),
        (200, {}, "hello", "odd"),
    ],
)
def test_answers_are_told_apart(
    status: int, headers: dict[str, str], body: object, kind: str
) -> None:
    assert judge(status, headers, body).kind == kind

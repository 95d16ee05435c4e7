"""Errors in place of an answer: each status becomes the SDK's own exception, with its body and headers."""

import pytest

from chatfold.testing.servers import Fail
from tests.chatfold.testing_servers.kits import KITS, Kit

pytestmark = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)

CLASSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    500: "InternalServerError",
    503: "InternalServerError",
    529: "InternalServerError",
}
ANTHROPIC_TYPES = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}


@pytest.mark.parametrize("status", CLASSES)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_each_status(kit: Kit, status: int, stream: bool) -> None:
    async with kit.server([Fail(status, "No luck today.", headers={"Retry-After": "7"})]) as server:
        with pytest.raises(getattr(kit.errors, CLASSES[status]), match="No luck today") as caught:
            await kit.ask(server, stream=stream)
        assert server.refused == []
    error = caught.value
    assert error.status_code == status
    assert error.response.headers["retry-after"] == "7"
    assert error.request_id is not None
    if kit.name == "anthropic":
        assert error.body["type"] == "error"
        assert error.body["request_id"] == error.request_id
        assert error.body["error"]["type"] == ANTHROPIC_TYPES.get(status, error.body["error"]["type"])
    else:
        assert error.code == OPENAI_CODES.get(status)


async def test_type_code_and_param_are_free(kit: Kit) -> None:
    fail = Fail(429, "You exceeded your quota.", type="insufficient_quota", code="insufficient_quota", param="model")
    async with kit.server([fail]) as server:
        with pytest.raises(kit.errors.RateLimitError) as caught:
            await kit.ask(server)
    if kit.name == "anthropic":
        assert caught.value.body["error"]["type"] == "insufficient_quota"
    else:
        assert (caught.value.type, caught.value.code) == ("insufficient_quota", "insufficient_quota")
        assert caught.value.param == "model"


async def test_a_gateway_in_between_answers_html(kit: Kit) -> None:
    async with kit.server([Fail(502, body="<html>Bad gateway</html>")]) as server:
        with pytest.raises(kit.errors.InternalServerError) as caught:
            await kit.ask(server)
    assert caught.value.response.headers["content-type"].startswith("text/html")
    assert caught.value.response.text == "<html>Bad gateway</html>"

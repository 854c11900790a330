"""The app about itself: granted scopes, subscribed events and callbacks."""

from internal.simulators.lark.errors import LarkError
from internal.simulators.lark.model import Json
from internal.simulators.lark.rest import scopes
from internal.simulators.lark.rest.call import RestCall, RestEndpoint
from internal.simulators.lark.state import LarkState

FOREIGN_APP, NO_VERSION = 210508, 210511
_GRANTED, _ENABLED, _AUDITED = 1, 1, 1
_LANGUAGES = frozenset({"zh_cn", "en_us", "ja_jp"})


def list_scopes(_: LarkState, call: RestCall) -> Json:
    """Return the scopes that the organization granted to the app."""
    granted = [scope for scope in sorted(scopes.ALL_SCOPES) if call.app.has_scope(scope)]
    return {
        "scopes": [
            {"scope_name": scope, "grant_status": _GRANTED, "scope_type": "tenant"}
            for scope in granted
        ]
    }


def get_application(_: LarkState, call: RestCall) -> Json:
    """Return the app, with the callbacks of the long connection."""
    _check(call)
    app = call.app
    return {
        "app": {
            "app_id": app.app_id,
            "status": _ENABLED,
            "scene_type": 0,
            "app_name": app.name,
            "online_version_id": _version(call),
            "callback_info": {
                "callback_type": "websocket",
                "request_url": "",
                "subscribed_callbacks": sorted(app.callbacks),
            },
        }
    }


def get_version(_: LarkState, call: RestCall) -> Json:
    """Return the published version of the app, with its events."""
    _check(call)
    if call.path["version_id"] != _version(call):
        raise LarkError(NO_VERSION, "no such app version")
    events = [
        {"event_type": event, "event_name": event, "event_description": ""}
        for event in sorted(call.app.events)
    ]
    version = {"app_id": call.app.app_id, "version": "1.0.0", "version_id": _version(call)}
    return {"app_version": {**version, "status": _AUDITED, "event_infos": events}}


def _check(call: RestCall) -> None:
    call.choice("lang", _LANGUAGES)
    if call.path["app_id"] not in {call.app.app_id, "me"}:
        raise LarkError(FOREIGN_APP, "insufficient permission level")


def _version(call: RestCall) -> str:
    return f"oav_{call.app.open_id.removeprefix('ou_')}"


_APP = "/open-apis/application/v6/applications/{app_id}"
ENDPOINTS = (
    RestEndpoint("GET", "/open-apis/application/v6/scopes", list_scopes),
    RestEndpoint("GET", _APP, get_application, scopes.APP_INFO),
    RestEndpoint("GET", _APP + "/app_versions/{version_id}", get_version, scopes.APP_INFO),
)

"""Routes about the program itself, its page included."""

import re

import msgspec
from starlette.responses import Response

from internal.channels.web.endpoints import Call
from internal.channels.web.errors import HttpRefusal
from internal.channels.web.schemas import (
    BriefHealth,
    MeView,
    Nothing,
    ProfilesView,
    ProfileView,
    view_of_principal,
)
from internal.channels.web.static_page import FOREVER, NOT_BUILT, POLICY


async def show_health(call: Call[Nothing, Nothing]) -> Response:
    """Say how the program is, 503 when it fails; whoever has no credential learns that alone."""
    health = call.door.health()
    told = BriefHealth(health.status) if call.exchange.principal is None else health
    status = 200 if health.status == "ok" else 503
    return Response(msgspec.json.encode(told), status, media_type="application/json")


async def show_me(call: Call[Nothing, Nothing]) -> MeView:
    """Say who asks, and which model answers."""
    defaults = call.door.defaults
    return view_of_principal(call.principal, defaults.provider, defaults.model)


async def list_profiles(call: Call[Nothing, Nothing]) -> ProfilesView:
    """Say who the agent can be."""
    defaults = call.door.defaults
    return ProfilesView(
        [
            ProfileView(name, known.role, known.goal, known.tone, known.tools, known.model)
            for name, known in sorted(defaults.profiles.items())
        ],
        defaults.profile,
    )


async def show_page(call: Call[Nothing, Nothing]) -> Response:
    """Return the page; it finds out itself what its address names."""
    index = call.door.page.index
    if not index:
        raise HttpRefusal(503, "page_not_built", NOT_BUILT)
    headers = {"cache-control": "no-cache", "content-security-policy": POLICY}
    return Response(index, headers=headers, media_type="text/html")


async def show_asset(call: Call[Nothing, Nothing]) -> Response:
    """Return a script, a style or a picture of the page, compressed as the browser takes it."""
    name = call.path["name"]
    asset = call.door.page.assets.get(name)
    if asset is None:
        raise HttpRefusal(404, "not_found", f"The page has no file {name[:80]}.")
    told = b",".join(call.exchange.headers(b"accept-encoding")).decode("latin-1")
    encoding = asset.encoding(re.split(r"[\s,;]+", told))
    headers = {"cache-control": FOREVER, "content-security-policy": POLICY}
    headers |= {"vary": "Accept-Encoding"}
    headers |= {"content-encoding": encoding} if encoding else {}
    return Response(asset.bodies[encoding], headers=headers, media_type=asset.media_type)

"""Routes for health, processes, identity, profiles and the page."""

import re

import msgspec
from starlette.responses import Response

from internal.agent.app.processes.process_list import ProcessView
from internal.channels.web.endpoints import ApiRequest
from internal.channels.web.errors import HttpError
from internal.channels.web.schemas import (
    EmptyRequest,
    HealthSummary,
    MeView,
    ProfilesView,
    me_view,
    profiles_view,
)
from internal.channels.web.services import ModelsView
from internal.channels.web.static_page import (
    CONTENT_SECURITY_POLICY,
    IMMUTABLE,
    NOT_BUILT_MESSAGE,
    NOTICES,
    PREVIEW,
    PREVIEW_POLICY,
    index_below,
)


async def show_health(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the health of the gateway, 503 unless ok; only the status without authentication."""
    health = await request.services.health()
    body = HealthSummary(health.status) if request.context.principal is None else health
    status = 200 if health.status == "ok" else 503
    return Response(msgspec.json.encode(body), status, media_type="application/json")


class ProcessesView(msgspec.Struct, frozen=True):
    """The gateways and workers of the database, those that started first before the others."""

    processes: list[ProcessView]


async def list_processes(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ProcessesView:
    """List the gateways and workers of the database. Requires the owner role."""
    return ProcessesView(await request.services.gateway.processes.list_all(request.principal))


async def show_me(request: ApiRequest[EmptyRequest, EmptyRequest]) -> MeView:
    """Return the authenticated principal, and the default model and permission mode."""
    return me_view(request.principal, request.services.defaults)


async def list_profiles(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ProfilesView:
    """List the profiles."""
    return profiles_view(request.principal, request.services.defaults)


async def list_models(request: ApiRequest[EmptyRequest, EmptyRequest]) -> ModelsView:
    """List the known models and the default one."""
    return request.services.models


async def show_page(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the page; it routes by its address in the browser."""
    index = index_below(request.services.page, request.services.settings.path)
    if not index:
        raise HttpError(503, "page_not_built", NOT_BUILT_MESSAGE)
    headers = {"cache-control": "no-cache", "content-security-policy": CONTENT_SECURITY_POLICY}
    return Response(index, headers=headers, media_type="text/html")


async def show_preview(_: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the frame in which the page shows an HTML document."""
    headers = {"cache-control": "no-cache", "content-security-policy": PREVIEW_POLICY}
    return Response(PREVIEW, headers=headers, media_type="text/html")


async def show_manifest(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the manifest, with which a browser installs the page as an application."""
    return _fixed_file(request, "manifest.webmanifest")


async def show_icon(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return an icon of the installed page."""
    return _fixed_file(request, f"icons/{request.path['name']}")


async def show_notices(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return the licences of the packages whose code is in the page."""
    return _fixed_file(request, NOTICES)


async def show_asset(request: ApiRequest[EmptyRequest, EmptyRequest]) -> Response:
    """Return a file of the page in the best encoding that the browser accepts."""
    name = request.path["name"]
    asset = request.services.page.assets.get(name)
    if asset is None:
        raise HttpError(404, "not_found", f"The page has no asset {name[:80]}.")
    accepted = b",".join(request.context.headers(b"accept-encoding")).decode("latin-1")
    encoding = asset.best_encoding(re.split(r"[\s,;]+", accepted))
    headers = {"cache-control": IMMUTABLE, "content-security-policy": CONTENT_SECURITY_POLICY}
    headers |= {"vary": "Accept-Encoding"}
    headers |= {"content-encoding": encoding} if encoding else {}
    return Response(asset.bodies[encoding], headers=headers, media_type=asset.media_type)


def _fixed_file(request: ApiRequest[EmptyRequest, EmptyRequest], path: str) -> Response:
    file = request.services.page.fixed.get(path)
    if file is None:
        raise HttpError(404, "not_found", f"The page has no file {path[:80]}.")
    return Response(
        file.bodies[""], headers={"cache-control": "no-cache"}, media_type=file.media_type
    )

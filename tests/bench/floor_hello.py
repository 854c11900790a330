"""Baseline: a hello-world server. ``python -m tests.bench.floor_hello PORT``."""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def hello(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


if __name__ == "__main__":
    app = Starlette(routes=[Route("/health", hello)])
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_config=None)

"""The HTTP API as an ASGI app."""

import secrets
from importlib import metadata

from fastapi import Depends, FastAPI

from horolog.api import openapi, problems
from horolog.api.auth import Authenticator, OpenHouse
from horolog.api.backend import Backend
from horolog.api.context import Context, Gateways
from horolog.api.cursors import Cursors
from horolog.api.edge import SameSite
from horolog.api.routes import (
    events,
    jobs,
    leases,
    projections,
    runs,
    slots,
    system,
    tenants,
    workers,
)


def create_app(
    backend: Backend,
    *,
    auth: Authenticator | None = None,
    secret: bytes | None = None,
    hosts: tuple[str, ...] = (),
) -> FastAPI:
    """The app over a backend. `secret`: signs cursors; random when None, so that cursors end with
    the process. `hosts`: names beside localhost by which it may be called.
    """
    app = routed()
    app.state.horolog = Context(
        backend,
        Gateways(backend),
        auth or OpenHouse(),
        Cursors(secret or secrets.token_bytes(32)),
    )
    app.add_middleware(SameSite, hosts=frozenset(hosts))
    return app


def routed() -> FastAPI:
    """The routes without a backend: enough for their document."""
    app = openapi.DescribedApp(
        title="Horolog",
        version=metadata.version("horolog"),
        generate_unique_id_function=openapi.operation_id,
        description="Jobs that run when they are due, each slot accounted for.",
    )
    problems.install(app)
    for router in (
        leases.router,
        events.router,
        slots.router,
        jobs.router,
        runs.router,
        tenants.router,
        workers.router,
        projections.router,
        system.router,
    ):
        app.include_router(router, dependencies=[Depends(openapi.check_parameters)])
    return app

"""Maintenance of the database: retention, and the commands of `larkspur db`."""

from internal.agent.app.gateway import Gateway
from internal.agent.app.retention.pruner import Pruner, RetentionPolicy
from larkspur.services import Services


def make_pruner(services: Services, gateway: Gateway) -> Pruner:
    """Return what removes rows and sessions that are older than the settings allow."""
    return Pruner(
        services.database,
        services.stores,
        clock=services.clock,
        policy=RetentionPolicy(**services.settings.retention.model_dump()),
        remove_session=gateway.delete_idle_session,
    )

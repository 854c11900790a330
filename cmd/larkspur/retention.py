"""Retention of rows and sessions, from the settings."""

from internal.agent.app.gateway import Gateway
from internal.agent.app.retention.pruner import Pruner, RetentionPolicy
from internal.settings.settings import Settings
from larkspur.services import Services


def make_pruner(services: Services, gateway: Gateway) -> Pruner:
    """Return the pruner of rows and sessions that are older than the settings allow."""
    return Pruner(
        services.database,
        services.stores,
        clock=services.clock,
        policy=retention_policy(services.settings),
        remove_session=gateway.delete_idle_session,
        workspaces=services.workspaces,
    )


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return how long the settings keep rows and sessions."""
    retention = settings.retention
    return RetentionPolicy(
        events_days=retention.events_days,
        sessions_days=retention.sessions_days,
        one_shot_days=retention.one_shot_days,
        audit_days=retention.audit_days,
        handled_messages_days=retention.handled_messages_days,
        usage_days=retention.usage_days,
    )

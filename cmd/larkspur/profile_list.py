"""The profiles as `larkspur profiles` lists them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from internal.agent.domain.tasks import Profile
from internal.channels.cli.application import ListedProfile
from internal.config.loader import Loaded
from internal.llm.model_catalog import make_model_book
from internal.settings.messages import nearest
from internal.settings.settings import Settings
from larkspur.task_defaults import open_profiles


def list_profiles(loaded: Loaded) -> Iterator[ListedProfile]:
    """Yield the profiles by name, unusable and missing ones included."""
    library = open_profiles(loaded.home, make_model_book(loaded.settings.llm))
    used = loaded.settings.agent.profile
    known = {source.name for source in library.sources()}
    for key, name in _named(loaded.settings):
        if name not in known:
            missing = f"{key}: there is no profile {name}{nearest(name, known)}"
            yield ListedProfile(name, name == used, key, missing, "", "", {})
    for source in library.sources():
        profile = library.get(source.name)
        yield ListedProfile(
            source.name,
            source.name == used,
            "built in" if source.path is None else str(source.path),
            source.problem,
            source.warning,
            "" if profile is None else profile.description,
            {} if profile is None else _values(profile),
        )


def _named(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the profiles that the settings name, with their keys."""
    yield "agent.profile", settings.agent.profile
    channel = settings.channels.lark
    if channel.profile is not None:
        yield "channels.lark.profile", channel.profile
    for chat_id, group in channel.groups.items():
        if group.profile is not None:
            yield f"channels.lark.groups.{chat_id}.profile", group.profile


def _values(profile: Profile) -> dict[str, Any]:
    """Return the keys that a profile sets, as its file names them."""
    names = profile.__struct_fields__  # unlike its encoding, with those that have their defaults
    values = {name: msgspec.to_builtins(getattr(profile, name)) for name in names}
    values["instructions"] = values.pop("prompt")
    del values["name"]
    return {key: value for key, value in values.items() if value not in (None, "", [])}

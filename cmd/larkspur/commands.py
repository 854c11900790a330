"""The commands that only look: the doctor, the settings, the models, the schema of the events."""

import json
import sys
from argparse import Namespace

from internal.agent.domain.events import schema
from internal.channels.cli.exit_codes import OK
from internal.config.inspect import describe
from internal.config.loader import load
from larkspur.doctor import examine
from larkspur.failing import sentences
from larkspur.models import list_models


def run(wanted: Namespace) -> int:
    """Do the command and return the exit code.

    Raises:
        Leave: it cannot be done.
    """
    with sentences():
        match wanted.command:
            case "doctor":
                return examine(wanted.config, as_json=wanted.json)
            case "models":
                return list_models(wanted.config, as_json=wanted.json)
            case "config":
                return _show_config(wanted)
            case _:
                return _show_schema(wanted)


def _show_config(wanted: Namespace) -> int:
    loaded = load(config=wanted.config)
    if wanted.what == "path":
        print(loaded.file or loaded.home / "config.yaml")
        return OK
    for row in describe(loaded):
        print(f"{row.key}: {row.value}  # {row.origin}")
    return OK


def _show_schema(wanted: Namespace) -> int:
    if wanted.markdown:
        sys.stdout.write(schema.markdown())
    else:
        print(json.dumps(schema.json_schema(), indent=2, ensure_ascii=False))
    return OK

"""What failed, as the sentence and the exit code that a person gets."""

from collections.abc import Generator
from contextlib import contextmanager

from internal.agent.domain.errors import LarkspurError, ModelKeyRejected, RequestError, StoreCorrupt
from internal.channels.cli.client import GatewayError
from internal.channels.cli.exit_codes import CONFIG, FAILED, USAGE, CliExit
from internal.config.home import HomeError
from internal.config.types import ConfigError


@contextmanager
def sentences() -> Generator[None]:
    """Turn every error that was foreseen into a sentence; one that was not keeps its traceback.

    Raises:
        Leave: something failed that a person can do something about.
    """
    try:
        yield
    except (ConfigError, HomeError, ModelKeyRejected, StoreCorrupt) as error:
        raise CliExit(CONFIG, str(error)) from error
    except (RequestError, GatewayError) as error:
        raise CliExit(USAGE, str(error)) from error
    except LarkspurError as error:
        raise CliExit(FAILED, str(error)) from error

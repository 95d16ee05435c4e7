"""Settings: defaults, a TOML file, then ``CHATFOLD_*`` environment variables, then what the program gives."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from generation.errors import InvalidBaseUrl
from generation.providers.base_url import check_base_url
from generation.runtime import WorkerSettings

_DAY: Final = 86_400

CONFIG: Final = "CHATFOLD_CONFIG"
"""The environment variable that names the TOML file."""


class Settings(BaseSettings):
    """How an engine runs. Times are seconds.

    The TOML file is named by ``CHATFOLD_CONFIG``, else ``chatfold.toml`` in the working directory, if there is one.
    Each setting is also an environment variable: ``CHATFOLD_POLL``, ``CHATFOLD_QUEUE_LIMIT`` and so on.

    Raises:
        pydantic.ValidationError: A setting is wrong, or the file cannot be read; its title is the file where it is
            the file's fault.
    """

    model_config = SettingsConfigDict(env_prefix="CHATFOLD_", extra="forbid", frozen=True)

    # Defaults are plain and not Field's: type checkers without pydantic's plug-in would demand each setting.
    db: Annotated[
        str | None, Field(description="Store URL of the command line; without it a file in the user's data folder.")
    ] = None
    capacity: Annotated[int, Field(ge=1, le=100_000, description="Chats that one worker runs at once.")] = 100
    lease: Annotated[
        float, Field(gt=0, le=_DAY, description="How long a worker's lease lasts without a heartbeat.")
    ] = 15.0
    poll: Annotated[
        float, Field(gt=0, le=_DAY, description="How often a worker looks for due chats where no hint came.")
    ] = 1.0
    grace: Annotated[
        float, Field(ge=0, le=_DAY, description="How long an interruption or a release waits for running tools.")
    ] = 5.0
    first_part_timeout: Annotated[
        float, Field(gt=0, le=_DAY, description="How long a model may take to its first part.")
    ] = 60.0
    silence_timeout: Annotated[
        float, Field(gt=0, le=_DAY, description="How long a model may be silent after that.")
    ] = 600.0
    context_timeout: Annotated[
        float, Field(gt=0, le=_DAY, description="How long a context source may take to collect.")
    ] = 60.0
    model_retry_unit: Annotated[
        float,
        Field(
            gt=0,
            le=3_600,
            description="What stands for one second in the waits (1, 2, 4 ... 60) before a model call is retried.",
        ),
    ] = 1.0
    queue_limit: Annotated[int, Field(ge=0, le=10_000, description="Messages that a chat's queue holds.")] = 20
    warm_mb: Annotated[
        int, Field(ge=0, le=1_000_000, description="Megabytes of chats that a process remembers between their turns.")
    ] = 64
    base_url: Annotated[
        str | None,
        Field(description="Where the built-in model providers reach their service; None: each one's own default."),
    ] = None
    debug_folder: Annotated[
        str | None,
        Field(
            description="Folder in which each model call is recorded, request and response, redacted; None: nowhere."
        ),
    ] = None
    log_level: Annotated[str, Field(description="Least level that the command line logs to stderr.")] = "warning"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: given, environment, file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=_from_file(settings_cls))

    @field_validator("base_url")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        """Refuse now what would otherwise fail call by call, as if the service were away."""
        try:
            return None if value is None else check_base_url(value)
        except InvalidBaseUrl as error:
            # A plain ValueError would be shown with pydantic's own words around it.
            raise PydanticCustomError("base_url", "{why}", {"why": error.why}) from None

    def worker_settings(self) -> WorkerSettings:
        """Return the worker's share."""
        return WorkerSettings(
            capacity=self.capacity,
            lease=self.lease,
            poll=self.poll,
            grace=self.grace,
            first_part_timeout=self.first_part_timeout,
            silence_timeout=self.silence_timeout,
            context_timeout=self.context_timeout,
            model_retry_unit=self.model_retry_unit,
        )


def config_file() -> Path | None:
    """Return the TOML file: the one that ``CHATFOLD_CONFIG`` names, there or not, else the working directory's."""
    named = os.environ.get(CONFIG)
    if named is not None:
        return Path(named)
    usual = Path("chatfold.toml")
    return usual if usual.is_file() else None


def _from_file(settings: type[BaseSettings]) -> dict[str, Any]:
    """Return what the file says. It is checked by itself, so that its errors name it."""
    file = config_file()
    if file is None:
        return {}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = f"{error.strerror}; {CONFIG} names it" if CONFIG in os.environ else str(error.strerror)
        raise _unreadable(file, why) from error
    except ValueError as error:
        raise _unreadable(file, f"is not TOML: {error}") from error
    try:
        # As pydantic's own constructor does it: the settings' constructor would look for its sources again.
        settings.__pydantic_validator__.validate_python(values, self_instance=settings.__new__(settings))
    except ValidationError as error:
        found = [
            InitErrorDetails(
                type=PydanticCustomError(each["type"], "{why}", {"why": each["msg"]}),
                loc=each["loc"],
                input=each["input"],
            )
            for each in error.errors()
        ]
        raise ValidationError.from_exception_data(str(file), found) from None
    return values


def _unreadable(file: Path, why: str) -> ValidationError:
    problem = PydanticCustomError("config_file", "{why}", {"why": why})
    return ValidationError.from_exception_data(str(file), [InitErrorDetails(type=problem, input=str(file))])

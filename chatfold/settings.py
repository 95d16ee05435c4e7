"""Settings: defaults, a TOML file, then ``CHATFOLD_*`` environment variables, then what the program gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from generation.providers.base_url import check_base_url
from generation.runtime import WorkerSettings


class Settings(BaseSettings):
    """How an engine runs. Times are seconds.

    The TOML file is named by ``CHATFOLD_CONFIG``, else ``chatfold.toml`` in the working directory, if there is one.
    Each setting is also an environment variable: ``CHATFOLD_POLL``, ``CHATFOLD_QUEUE_LIMIT`` and so on.
    """

    model_config = SettingsConfigDict(env_prefix="CHATFOLD_", extra="forbid", frozen=True)

    # Defaults are plain and not Field's: type checkers without pydantic's plug-in would demand each setting.
    db: Annotated[
        str | None, Field(description="Store URL of the command line; without it a file in the user's data folder.")
    ] = None
    capacity: Annotated[int, Field(ge=1, description="Chats that one worker runs at once.")] = 100
    lease: Annotated[float, Field(gt=0, description="How long a worker's lease lasts without a heartbeat.")] = 15.0
    poll: Annotated[float, Field(gt=0, description="How often a worker looks for due chats where no hint came.")] = 1.0
    grace: Annotated[
        float, Field(ge=0, description="How long an interruption or a release waits for running tools.")
    ] = 5.0
    first_part_timeout: Annotated[float, Field(gt=0, description="How long a model may take to its first part.")] = 60.0
    silence_timeout: Annotated[float, Field(gt=0, description="How long a model may be silent after that.")] = 600.0
    model_retry_unit: Annotated[
        float,
        Field(
            gt=0, description="What stands for one second in the waits (1, 2, 4 ... 60) before a model call is retried."
        ),
    ] = 1.0
    queue_limit: Annotated[int, Field(ge=0, description="Messages that a chat's queue holds.")] = 20
    base_url: Annotated[
        str | None,
        Field(description="Where the built-in model providers reach their service; None: each one's own default."),
    ] = None
    log_level: Annotated[str, Field(description="Least level that the command line logs to stderr.")] = "warning"

    @field_validator("base_url")
    @classmethod
    def _is_a_url(cls, given: str | None) -> str | None:
        return None if given is None else check_base_url(given)

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
        toml = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, toml

    def worker_settings(self) -> WorkerSettings:
        """Return the worker's share."""
        return WorkerSettings(
            capacity=self.capacity,
            lease=self.lease,
            poll=self.poll,
            grace=self.grace,
            first_part_timeout=self.first_part_timeout,
            silence_timeout=self.silence_timeout,
            model_retry_unit=self.model_retry_unit,
        )


def config_file() -> Path:
    """Return where the TOML file would be."""
    return Path(os.environ.get("CHATFOLD_CONFIG", "chatfold.toml"))

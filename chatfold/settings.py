"""Settings: defaults, a TOML file, then ``CHATFOLD_*`` environment variables, then what the program gives."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from generation.runtime import WorkerSettings


class Settings(BaseSettings):
    """How an engine runs. Times are seconds.

    The TOML file is named by ``CHATFOLD_CONFIG``, else ``chatfold.toml`` in the working directory, if there is one.
    Each setting is also an environment variable: ``CHATFOLD_POLL``, ``CHATFOLD_QUEUE_LIMIT`` and so on.
    """

    model_config = SettingsConfigDict(env_prefix="CHATFOLD_", extra="forbid", frozen=True)

    db: str | None = Field(
        None, description="Store URL of the command line; without it a file in the user's data folder."
    )
    capacity: int = Field(100, ge=1, description="Chats that one worker runs at once.")
    lease: float = Field(15.0, gt=0, description="How long a worker's lease lasts without a heartbeat.")
    poll: float = Field(1.0, gt=0, description="How often a worker looks for due chats where no hint came.")
    grace: float = Field(5.0, ge=0, description="How long an interruption or a release waits for running tools.")
    first_part_timeout: float = Field(60.0, gt=0, description="How long a model may take to its first part.")
    silence_timeout: float = Field(600.0, gt=0, description="How long a model may be silent after that.")
    model_retry_unit: float = Field(
        1.0,
        gt=0,
        description="What stands for one second in the waits (1, 2, 4 ... 60) before a model call is retried.",
    )
    queue_limit: int = Field(20, ge=0, description="Messages that a chat's queue holds.")
    base_url: str | None = Field(
        None, description="Where the built-in model providers reach their service; None: each one's own default."
    )
    log_level: str = Field("warning", description="Least level that the command line logs to stderr.")

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

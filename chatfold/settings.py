"""Settings: defaults, a TOML file, then ``CHATFOLD_*`` environment variables, then what the program gives."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from events.errors import InvalidValue
from generation.errors import InvalidBaseUrl
from generation.nearest import meant, nearest
from generation.providers.base_url import check_base_url
from generation.runtime import WorkerSettings
from store.failpoints import VARIABLE as FAILPOINTS
from store.log import LEVELS

_DAY: Final = 86_400

PREFIX: Final = "CHATFOLD_"
"""What the name of each environment variable begins with."""

CONFIG: Final = f"{PREFIX}CONFIG"
"""The environment variable that names the TOML file."""

_OTHERS: Final = re.compile(
    rf"{CONFIG}|{FAILPOINTS}|{PREFIX}(?:TEST|BENCH)_\w+"
    # What Kubernetes tells each container of the services named chatfold and chatfold-*.
    r"|CHATFOLD(?:_\w+)?_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)",
    re.ASCII,
)
"""Environment variables of the prefix that are no settings and no mistakes."""


class Settings(BaseSettings):
    """How an engine runs. Times are seconds.

    The TOML file is named by ``CHATFOLD_CONFIG``, else ``chatfold.toml`` in the working directory, if there is one.
    Each setting is also an environment variable: ``CHATFOLD_POLL``, ``CHATFOLD_QUEUE_LIMIT`` and so on.

    Raises:
        InvalidValue: A setting is wrong, there is none of a name, or the file cannot be read. Its path is the argument,
            the environment variable, or the file with the setting in it; its cause is pydantic's own error, with all
            that is wrong.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    # Defaults are plain and not Field's: type checkers without pydantic's plug-in would demand each setting.
    db: Annotated[
        str | None, Field(description="Store URL of the command line; without it a file in the user's data folder.")
    ] = None
    capacity: Annotated[int, Field(ge=1, le=100_000, description="Chats that one worker runs at once.")] = 100
    lease: Annotated[
        float, Field(gt=0, le=_DAY, description="How long a worker's lease lasts without a heartbeat.")
    ] = 15.0
    poll: Annotated[
        float,
        Field(
            gt=0,
            le=_DAY,
            description="How often a worker looks for due chats where no hint came. A deadline or a retry of a chat "
            "whose worker is gone is noticed that much later at most, give or take a fifth.",
        ),
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
        Field(
            description="Where all built-in model providers reach their service, and send their keys; None: each one's "
            "own default. For an address for each see `builtin_provider`."
        ),
    ] = None
    debug_folder: Annotated[
        str | None,
        Field(
            description="Folder in which each model call is recorded, request and response, redacted; None: nowhere."
        ),
    ] = None
    log_level: Annotated[str, Field(description="Least level that the command line logs to stderr.")] = "warning"

    if not TYPE_CHECKING:  # type checkers would take any name for a setting

        def __init__(self, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise _invalid(error, type(self), given) from error

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

    @field_validator("*", mode="before")
    @classmethod
    def _no_flag(cls, value: object) -> object:
        """Refuse True and False, which would be taken for 1 and 0: no setting is a flag."""
        if isinstance(value, bool):
            raise PydanticCustomError("flag", "must be no flag: there is no setting of this kind")
        return value

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value.lower() not in LEVELS:
            raise PydanticCustomError("log_level", f"must be one of {', '.join(LEVELS)}")
        return value

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
    return usual if usual.exists() else None


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
                type=PydanticCustomError(each["type"], "{why}", {"why": _why(each, settings)}),
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


def _invalid(error: ValidationError, settings: type[BaseSettings], given: Mapping[str, Any]) -> InvalidValue:
    """Return what pydantic found as an error of ours: where the first problem is, and all that is wrong."""
    file = None if error.title == settings.__name__ else error.title
    (path, why), *others = [(_place(each, file, given), _why(each, settings)) for each in error.errors()]
    return InvalidValue(path, "; ".join([why, *(f"{place}: {said}" for place, said in others)]))


def _place(problem: Mapping[str, Any], file: str | None, given: Mapping[str, Any]) -> str:
    name = ".".join(map(str, problem["loc"]))
    if file is not None:
        return f"{file}: {name}" if name else file
    variable = next((each for each in os.environ if each.upper() == f"{PREFIX}{name.upper()}"), None)
    return variable if variable is not None and name not in given else f"$.{name}"


def _why(problem: Mapping[str, Any], settings: type[BaseSettings]) -> str:
    if problem["type"] != "extra_forbidden" or problem["msg"].startswith(_NO_SUCH):
        return str(problem["msg"]).replace("Input should be", "must be")
    return _NO_SUCH + meant(str(problem["loc"][-1]).lower(), settings.model_fields)


_NO_SUCH: Final = "there is no such setting"


def stray_variables(settings: type[BaseSettings] = Settings) -> Iterator[tuple[str, str | None]]:
    """Yield the environment variables that look like settings and are none, with the one that may have been meant.

    They are no error: an environment is shared, with releases that know other settings and with programs that name
    theirs alike.
    """
    fields = settings.model_fields
    for variable in sorted(os.environ):
        known = variable.upper()
        if not known.startswith(PREFIX) or _OTHERS.fullmatch(known):
            continue
        name = known.removeprefix(PREFIX).lower()
        if name not in fields:
            near = nearest(name.lower(), fields)
            yield variable, None if near is None else f"{PREFIX}{near.upper()}"

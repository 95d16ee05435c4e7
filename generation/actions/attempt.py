"""What every effect is given: the chat, the attempt, and the policy it runs under."""

from __future__ import annotations

from msgspec import Struct

from events.control import RunningAttempt
from events.ids import ChatId
from events.records import AttemptReport, ModelPolicy, Policy
from events.state import ChatState
from generation.actions.silence import SilenceGuard
from generation.agents import Agent
from generation.cancellation import CancelScope
from generation.errors import ClassifiedError, ProviderError
from generation.models import ModelConfig
from generation.observing import Effect
from generation.outcomes import Failed
from generation.parts import EpisodeKey
from generation.plans import Outcome
from generation.policy import microseconds
from generation.prompt import Prompt
from generation.runtime import Declared, Runtime


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt that was started and whose effect is to be done now.

    Attributes:
        runtime: The worker's shared parts.
        chat: The id that the chat has here (one that was imported may have another in its log).
        agent: The chat's agent.
        policy: The recorded policy.
        state: The chat, with its transcript.
        running: The attempt.
        scope: Carries the cause where the effect is cancelled.
        prompt: The chat's prompt, kept up from attempt to attempt.
        episode: Where the attempt's live parts go.
        effect: What observers are told that it is.
    """

    runtime: Runtime
    chat: ChatId
    agent: Agent
    policy: Policy
    state: ChatState
    running: RunningAttempt
    scope: CancelScope[Outcome]
    prompt: Prompt
    episode: EpisodeKey
    effect: Effect

    @property
    def declared(self) -> Declared:
        """What the agent says in each request, and its tools to be called."""
        return self.runtime.declared(self.agent, self.policy, self.state.control.policy)

    def config(self, model: ModelPolicy) -> ModelConfig:
        """Return the configuration behind a recorded model, for its options.

        Raises:
            ProviderError: It is not configured here any more.
        """
        if model is self.policy.compaction_model and self.agent.compaction is not None:
            return self.agent.compaction
        config = self.agent.find_model(model.reference)
        if config is None:  # pragma: no cover - find_model gives a configuration for every reference
            raise ProviderError(ClassifiedError(kind="config", message="The model is not configured."))
        return config

    def model(self) -> ModelPolicy:
        """Return the chat's model.

        Raises:
            ProviderError: The policy has none (rule D0 fails the turn before that).
        """
        if self.policy.model is None:
            raise ProviderError(ClassifiedError(kind="config", message="The agent has no model."))
        return self.policy.model

    def guard(self, limit: float) -> SilenceGuard:
        """Return a guard of the running task, which does the effect: it must say something within ``limit`` seconds.

        Else it is cancelled, and left behind where it has not ended after the grace.
        """
        return self.runtime.silences.guard(limit, self.runtime.settings.grace, self.scope.leave)

    def timed_out(self, guard: SilenceGuard) -> bool:
        """Whether the effect was cancelled by its guard, and by nobody else."""
        return guard.expired and self.scope.cause is None

    def failed(self, error: ClassifiedError, report: AttemptReport | None = None) -> Failed:
        """Return the failure of this attempt, with its retry budget."""
        # A chat of an older level has it not recorded.
        unit = self.policy.retry_unit_us
        return Failed(
            error=error,
            max_attempts=self.policy.max_model_attempts,
            unit_us=microseconds(self.runtime.settings.model_retry_unit) if unit is None else unit,
            report=report,
        )

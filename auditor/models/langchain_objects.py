"""Making LangChain models from specs, and reading what identifies one that was given."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from auditor.core import secrets
from auditor.core.errors import ConfigError, MissingDependency
from auditor.models import transport
from auditor.models.openai_protocol import revealed, unsupported

# One run may hold several models: --base-url, which is another's, must not draw a provider's key to it.
WITH_ADDRESS = ("openai", "ollama")
_FEATURE = "A LangChain model (langchain:)"
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
# What our settings are called by the classes of the integration packages; the first that a class knows is used.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict"),
    "timeout_s": ("timeout", "request_timeout", "default_request_timeout"),
    "base_url": ("base_url", "openai_api_base", "anthropic_api_url", "endpoint_url", "endpoint"),
    "max_retries": ("max_retries",),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """What to make: provider and model, and our settings for it."""

    provider: str
    name: str
    max_tokens: int
    temperature: float | None
    timeout_s: float
    base_url: str | None = None
    plain_limit: bool = False  # the limit on tokens under its older name, in the body

    @classmethod
    def read(cls, text: str, **settings: Any) -> Self:
        """The spec that ``PROVIDER:NAME`` names; `ConfigError` where it is not of this form."""
        provider, colon, name = text.partition(":")
        if not (provider and colon and name):
            raise ConfigError(
                f"model langchain:{text}: expected langchain:PROVIDER:NAME, for example "
                "langchain:anthropic:claude-sonnet-4-5 or langchain:ollama:llama3.2"
            )
        provider = provider.replace("-", "_")
        address = settings.pop("base_url", None)
        if address and provider in WITH_ADDRESS:
            settings["base_url"] = revealed(str(address))
        return cls(provider=provider, name=name, **settings)

    def facts(self) -> dict[str, object]:
        """What shapes the answers."""
        address = self.base_url and re.sub(r"//[^/@]*@", "//", self.base_url).partition("?")[0].rstrip("/")
        names = ("provider", "name", "max_tokens", "temperature")
        return {"base_url": address, **{name: getattr(self, name) for name in names}}

    def refused(self, body: object, own_temperature: bool) -> dict[str, str]:
        """Which of our settings a server says that it does not know, and what becomes of them; see `without`."""
        named = unsupported(body, ("temperature", *_FIELDS["max_tokens"][:2]))
        out = {}
        if "temperature" in named and self.temperature is not None and not own_temperature:
            out["temperature"] = "left out"
        if "max_completion_tokens" in named and self.provider == "openai" and not self.plain_limit:
            out["max_completion_tokens"] = "sent as max_tokens"
        return out

    def without(self, refused: Mapping[str, str]) -> Self:
        """The same model, asked as a server that ``refused`` some settings takes it."""
        return replace(
            self,
            temperature=None if "temperature" in refused else self.temperature,
            plain_limit=self.plain_limit or "max_completion_tokens" in refused,
        )

    def at_provider(self, provider: str) -> bool:
        """Whether the provider itself is asked, at its own address and prices."""
        moved = self.base_url or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
        return self.provider == provider and not moved


def build(spec: Spec) -> Any:
    """The chat model of ``spec``, without retries and cache of its own.

    Raises
    ------
    MissingDependency
        LangChain or the provider's package is not installed.
    ConfigError
        The provider is unknown, or refuses the settings (a key is missing).
    """
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingDependency(_FEATURE, "langchain", extra="langchain") from error
    wanted: dict[str, object] = {
        "temperature": spec.temperature,
        "max_tokens": None if spec.plain_limit else spec.max_tokens,
        "timeout_s": spec.timeout_s,
        "base_url": spec.base_url,
        "max_retries": 0,
    }
    try:
        # What a class knows can only be asked of the class, and LangChain names it by making one.
        first = init_chat_model(spec.name, model_provider=spec.provider)
        known = _names(type(first))
        settings = {
            next(n for n in _FIELDS[what] if n in known): value
            for what, value in wanted.items()
            if value is not None and known & set(_FIELDS[what])
        }
        if "http_async_client" in known:
            # LangChain shares one connection pool between models and event loops; a run has its own.
            settings["http_async_client"] = _http_client(first, spec.timeout_s)
        if spec.plain_limit:
            settings["extra_body"] = {"max_tokens": spec.max_tokens}
        model = init_chat_model(spec.name, model_provider=spec.provider, cache=False, **settings)
    except ImportError as error:
        # LangChain's message holds the line to run for the provider's own package.
        package = re.search(r"pip install (?:-U )?[`'\"]?([\w.-]+)", str(error))
        missing = package.group(1) if package else f"langchain-{spec.provider.replace('_', '-')}"
        raise MissingDependency(f"langchain:{spec.provider}:", missing) from error
    except Exception as error:  # noqa: BLE001 - each provider's class refuses with errors of its own
        why = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"langchain:{spec.provider}:{spec.name} could not be made: {why} See: audit list models"
        ) from None
    return model


def _names(kind: type[Any]) -> set[str]:
    """Names and aliases of the fields of a pydantic class."""
    aliases = {field.alias for field in kind.model_fields.values() if isinstance(field.alias, str)}
    return aliases | set(kind.model_fields)


def _http_client(model: object, timeout_s: float) -> object:
    """A fresh asynchronous HTTP client of the kind that the SDK behind ``model`` wants."""
    inner = getattr(getattr(model, "root_async_client", None), "_client", None)
    return transport.client(type(inner), timeout=timeout_s)


async def close(model: object) -> None:
    """Close what `build` opened."""
    client = getattr(model, "http_async_client", None)
    if client is not None:
        await client.aclose()


def bare(target: object) -> Any:
    """``target`` with the retries and caches inside it taken out, as copies; anything else in it as it is."""
    from langchain_core.language_models import BaseLanguageModel
    from langchain_core.runnables import RunnableSequence
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.retry import RunnableRetry

    if isinstance(target, RunnableRetry):
        return bare(target.bound)
    if isinstance(target, RunnableSequence):
        return RunnableSequence(*(bare(step) for step in target.steps), name=target.name)
    if isinstance(target, RunnableBindingBase):
        return target.model_copy(update={"bound": bare(target.bound)})
    if not isinstance(target, BaseLanguageModel):
        return target
    changed: dict[str, object] = {"cache": False}
    if "max_retries" in type(target).model_fields:
        changed["max_retries"] = 0
    copy = target.model_copy(update=changed)
    for name in ("_client", "_async_client"):
        copy.__dict__.pop(name, None)  # made on first use, from the settings: let it be made again
    sdk: object = getattr(copy, "root_async_client", None)
    if hasattr(sdk, "with_options"):
        copy.root_async_client = sdk.with_options(max_retries=0)
        copy.async_client = copy.root_async_client.chat.completions
    return copy


def models(target: object) -> Iterator[Any]:
    """The language models inside ``target``, in order."""
    from langchain_core.language_models import BaseLanguageModel

    if isinstance(target, BaseLanguageModel):
        yield target
    for step in getattr(target, "steps", ()):
        yield from models(step)
    if (bound := getattr(target, "bound", None)) is not None:
        yield from models(bound)


def variable(target: object) -> str | None:
    """The variable of the prompt template that ``target`` begins with; None where it begins with none.

    Raises
    ------
    ConfigError
        The template has no variable, or several.
    """
    from langchain_core.prompts import BasePromptTemplate

    first = next(iter(getattr(target, "steps", ())), target)
    if not isinstance(first, BasePromptTemplate):
        return None
    names = list(first.input_variables)
    if len(names) != 1:
        raise ConfigError(
            f"the prompt template of the model has the variables {', '.join(names) or 'none'}; one is needed, for "
            "the text. Fill the others: template.partial(…)"
        )
    return str(names[0])


def is_graph(target: object) -> bool:
    """Whether ``target`` is an agent of LangGraph: it runs its own tools and gives all messages back."""
    return any(kind.__module__.startswith("langgraph.") for kind in type(target).__mro__)


def label(target: object) -> str:
    """A name for reports: the class, and the model's own name where it says one."""
    inner = next(models(target), None)
    for field in ("model_name", "model", "model_id", "deployment_name"):
        name = getattr(inner, field, None)
        if isinstance(name, str) and name:
            return f"langchain:{type(inner).__name__}:{name}"
    return f"langchain:{type(target if inner is None else inner).__name__}"


def own_limit(target: object) -> int | None:
    """The most tokens that the model inside ``target`` is set to write."""
    inner = next(models(target), None)
    for name in _FIELDS["max_tokens"]:
        value = getattr(inner, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def know_secrets(target: object) -> None:
    """Keep the keys and headers of the models inside ``target`` out of everything that is written."""
    for model in models(target):
        for name in getattr(type(model), "model_fields", {}):
            value = getattr(model, name, None)
            if hasattr(value, "get_secret_value"):
                secrets.know(str(value.get_secret_value()))  # type: ignore[union-attr]
            elif isinstance(value, str) and _SECRET.search(name):
                secrets.know(value)
            elif isinstance(value, Mapping) and "headers" in name:
                for one in value.values():
                    secrets.know(str(one))


def serialized(target: object) -> str:
    """``target`` as LangChain writes it, with the names of keys in place of keys; see `is_whole`."""
    from langchain_core.load import dumps

    return re.sub(r" at 0x[0-9a-f]+", "", dumps(target))


def is_whole(text: str) -> bool:
    """Whether LangChain could serialize every part, so that the text tells one object from another."""
    return '"not_implemented"' not in text

"""``python:MODULE:FUNCTION``: any Python callable as a model.

A function takes one text and returns one answer, or takes and returns lists (option or attribute ``batch``, or an
annotation such as ``list[str]``). It is plain or ``async``; plain ones run one call at a time in one worker thread.

An answer is a label, a number (tasks of kind score), ``(label, scores)``, ``{label: probability}``, a list or set of
labels, or an `auditor.core.protocols.Reply`; a data frame with a column for each label is a mapping for each row. A
function that raises fails that one call; a `CallError` is passed on as it is.

Attributes of the function declare what cannot be seen from outside: ``deterministic``, ``fingerprint``,
``auditor_batch``, ``auditor_style = "chat"`` (it gets messages), ``fast = False`` (a call costs money or time: little
is asked by default; so it is with messages and ``async``, unless ``fast = True``). A function with a parameter
``tools`` gets messages and the tools that it may call; it returns a text, ``{"tool_calls": [{"name", "arguments"}]}``,
or, where it ran tools itself, the messages that it adds (`auditor.core.talk`).
"""

from __future__ import annotations

import asyncio
import collections.abc
import difflib
import hashlib
import importlib
import inspect
import itertools
import json
import math
import numbers
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from auditor.core import reading, talk
from auditor.core.errors import BadRequest, BadResponse, CallError, CallTimeout, ConfigError, ServerFault
from auditor.core.protocols import Costs, Model, Reply, bare_text
from auditor.core.shown import plural
from auditor.core.types import Prompt, Request, digest
from auditor.models.adapter import best_label, read_scores

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Answers = list[str | float | dict[str, float]]


class PythonFunction(Model):
    """A Python callable as a model, or ``"MODULE:FUNCTION"`` (found from the current directory on).

    What is not given is what the function declares. ``fingerprint`` names the exact state of the model (weights,
    prompt, version); only a model with one is cached. Raises `ConfigError` where the function cannot be imported or
    called.

    >>> model = PythonFunction(lambda text: "positive", deterministic=True, name="always positive")
    >>> model.style, model.deterministic, model.cacheable
    ('text', True, False)
    """

    costs: ClassVar[Costs] = "nothing"

    def __init__(
        self,
        target: str | Callable[..., object],
        *,
        deterministic: bool | None = None,
        batch: bool | None = None,
        style: Literal["text", "chat"] | None = None,
        fingerprint: str | None = None,
        name: str | None = None,
    ) -> None:
        spec, function = (target, load(target)) if isinstance(target, str) else (_place(target), target)
        if isinstance(function, type):
            raise ConfigError(f"python:{spec} is a class; name a function, or an object made from the class")
        if not callable(function):
            raise ConfigError(f"python:{spec} is a {type(function).__name__} and cannot be called")
        self.calls_tools = "tools" in _parameters(function)
        chosen = style or getattr(function, "auditor_style", "chat" if self.calls_tools else "text")
        if chosen not in ("text", "chat"):
            raise ConfigError(f"python:{spec}: style {chosen!r} is neither text nor chat")
        declared = getattr(function, "auditor_batch", None) if batch is None else batch
        state = getattr(function, "fingerprint", None) if fingerprint is None else fingerprint
        self.name = name or f"python:{spec}"
        self.style: Literal["text", "chat"] = chosen
        self.deterministic = (
            getattr(function, "deterministic", False) is True if deterministic is None else deterministic
        )
        self.cacheable = isinstance(state, str)
        facts = {"adapter": "python.v1", "target": spec, "source": source_digest(function), "style": chosen}
        self.fingerprint = "python:" + digest(facts | {"declared": state if self.cacheable else None}, size=16)
        self._function: Callable[..., Any] = function
        if self.calls_tools:
            self._function = lambda asked: function(asked[0], tools=asked[1])
        self._batch = bool(declared) if declared is not None else chosen == "text" and _takes_list(function)
        self._async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - asked for its kind, not for whether it is there
        )
        self.fast = bool(getattr(function, "fast", chosen == "text" and not self._async))
        # What is handed over at once counts as asked when the audit is killed: no more than the function works on.
        self.max_batch = 64 if self._batch else 16 if self._async else 1
        self.at_once = None if self._async else 1
        self._executor: ThreadPoolExecutor | None = None

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Ask the function; a failure is the error of its own request."""
        inputs = [_input(request.prompt, self.style, self.calls_tools) for request in batch]
        asked = [value for value in inputs if not isinstance(value, CallError)]
        parts = [asked] if self._batch and asked else asked
        if self._async:
            answered = await asyncio.gather(*map(self._ask_async, parts))
        else:
            self._executor = self._executor or ThreadPoolExecutor(max_workers=1, thread_name_prefix="auditor-python")
            loop = asyncio.get_running_loop()
            answered = [await loop.run_in_executor(self._executor, self._ask, part) for part in parts]
        replies = itertools.chain.from_iterable(answered)
        return [value if isinstance(value, CallError) else next(replies) for value in inputs]

    async def aclose(self) -> None:
        """Let the worker thread go; a call that is running ends first, waiting ones are dropped."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def _ask(self, value: Any) -> list[Reply | CallError]:
        try:
            return self._replies(self._function(value), value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises
            return self._failed(error, value)

    async def _ask_async(self, value: Any) -> list[Reply | CallError]:
        try:
            return self._replies(await self._function(value), value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises
            return self._failed(error, value)

    def _replies(self, answer: object, value: Any) -> list[Reply | CallError]:
        return self._split(answer, len(value)) if self._batch else [self._read(answer)]

    def _failed(self, error: BaseException, value: Any) -> list[Reply | CallError]:
        """Make the error of each request; transient unless the function is declared deterministic."""
        failure: CallError
        message = f"{self.name} raised {type(error).__name__}: {error}"
        if isinstance(error, CallError):
            failure = error
        elif isinstance(error, TimeoutError):
            failure = CallTimeout(message)
        elif self.deterministic and not isinstance(error, OSError):
            failure = BadRequest(message)
        else:
            failure = ServerFault(message)
        return [failure] * (len(value) if self._batch else 1)

    def _split(self, answer: object, n: int) -> list[Reply | CallError]:
        if isinstance(answer, (str, bytes, Mapping)) or not isinstance(answer, collections.abc.Iterable):
            raise BadResponse(f"{self.name} got a list and returned {_kind(answer)}; a list of answers is expected")
        # Iterating over a data frame would give the names of its columns: one label for each text, it would seem.
        to_dict: Callable[..., list[Any]] | None = getattr(answer, "to_dict", None)
        answers = list(answer) if to_dict is None or not hasattr(answer, "columns") else to_dict("records")
        if len(answers) != n:
            raise BadResponse(f"{self.name} returned {plural(len(answers), 'answer')} to {plural(n, 'text')}")
        replies: list[Reply | CallError] = []
        for value in answers:
            try:
                replies.append(self._read(value))
            except CallError as error:
                replies.append(error)
        return replies

    def _read(self, answer: object) -> Reply | CallError:
        if isinstance(answer, (Reply, CallError)):
            return answer
        if isinstance(answer, str):
            return Reply(text=str(answer))
        if (number := _number(answer)) is not None:
            return Reply(text=number)
        if self.calls_tools and (said := talk.written(answer)) is not None:
            return Reply(text=said)
        if isinstance(answer, Mapping):
            scores = read_scores(answer, self.name)
            return Reply(text=best_label(scores), scores=scores)
        if isinstance(answer, tuple) and len(answer) == 2:
            label, scores_given = answer
            if isinstance(label, str) and isinstance(scores_given, Mapping):
                return Reply(text=str(label), scores=read_scores(scores_given, self.name))
        if (labels := _labels(answer)) is not None:
            return Reply(text=labels)
        if inspect.iscoroutine(answer):
            answer.close()
        raise BadResponse(
            f"{self.name} returned {_kind(answer)};"
            " expected a label, a number, (label, scores), {label: probability}, or a list or set of labels"
        )


def load(target: str) -> Any:
    """Import ``MODULE:FUNCTION``, with the current directory first on the import path; raise `ConfigError`."""
    module_name, colon, attribute = target.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigError(f"model python:{target}: expected python:MODULE:FUNCTION, e.g. python:my_model:predict")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    who = f"model python:{target}"
    try:
        value: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(f"{who}: module {module_name} needs {error.name}, which is not installed") from error
        near = _offer(module_name, [path.stem for path in Path(here).glob("*.py")])
        raise ConfigError(f"{who}: no module {module_name} in {here} or among the installed packages.{near}") from error
    except (Exception, SystemExit) as error:
        name = type(error).__name__
        raise ConfigError(f"{who}: importing {module_name} failed with {name}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(value, part):
            callables = [n for n in dir(value) if not n.startswith("_") and callable(getattr(value, n, None))]
            raise ConfigError(f"{who}: {module_name} has no {part!r}.{_offer(part, callables)}")
        value = getattr(value, part)
    return value


def _offer(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def _place(function: Callable[..., object]) -> str:
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(owner, '__module__', '?')}:{getattr(owner, '__qualname__', '?')}"


def source_digest(function: Any) -> str | None:
    """Return the SHA-256 of the file that defines the callable, else of its source, else None."""
    described = function if hasattr(function, "__code__") else type(function)
    module = inspect.getmodule(described)
    if isinstance(module, ModuleType) and (file := getattr(module, "__file__", None)):
        try:
            return reading.sha256(file)
        except OSError:
            return None
    try:
        return hashlib.sha256(inspect.getsource(described).encode("utf-8")).hexdigest()
    except (OSError, TypeError):
        return None


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters of the function; empty where they are unknown."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _takes_list(function: Callable[..., object]) -> bool:
    """Whether the first parameter is annotated as a list or sequence."""
    first = next(iter(_parameters(function).values()), None)
    written = "" if first is None else inspect.formatannotation(first.annotation).strip("'")
    return written.split("[")[0].rpartition(".")[2].lower() in {"list", "tuple", "sequence", "iterable", "collection"}


def _input(prompt: Prompt, style: str, tools: bool = False) -> Any:
    if style == "chat":
        if prompt.messages is None:
            return BadRequest("this model reads chat messages; it was sent a bare text")
        messages = [m.plain() for m in prompt.messages]
        return (messages, [tool.plain() for tool in prompt.tools]) if tools else messages
    return bare_text(prompt)


def _number(value: object) -> str | None:
    """Return a finite number (also numpy's) without an exponent; None for anything else."""
    if isinstance(value, bool | complex) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        return None
    return str(int(value)) if isinstance(value, numbers.Integral) else f"{Decimal(repr(float(value))):f}"


def _labels(value: object) -> str | None:
    """Return a list or set of labels (also numpy's) as a JSON list, sets in order; None for anything else."""
    if not isinstance(value, (list, tuple, collections.abc.Set)):
        tolist: Callable[[], Any] | None = getattr(value, "tolist", None)
        value = None if tolist is None else tolist()
    if not isinstance(value, (list, tuple, collections.abc.Set)):
        return None
    if not all(isinstance(label, str) for label in value) or len(set(value)) < len(value):
        return None  # a label twice: the answers of a function that went through the letters of a text, perhaps
    labels = sorted(value) if isinstance(value, collections.abc.Set) else value
    return json.dumps([str(label) for label in labels], ensure_ascii=False)


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"{type(value).__name__} {str(value)[:60]!r}"


def as_function(model: object) -> Callable[[list[str]], Answers] | None:
    """Return a function from texts to answers for a scikit-learn classifier or a transformers pipeline, else None.

    A library that was never imported made no object, so none is imported here.
    """
    estimators, pipelines = sys.modules.get("sklearn.base"), sys.modules.get("transformers")
    if estimators is not None and isinstance(model, estimators.BaseEstimator):
        return _of_estimator(model)
    if pipelines is not None and isinstance(model, pipelines.Pipeline):
        return lambda texts: [_answer_of(one) for one in model(texts)]
    return None


def _of_estimator(model: BaseEstimator) -> Callable[[list[str]], Answers]:
    # A pipeline has the method only where its last step has it.
    chances = getattr(model, "predict_proba", None)

    def predict(texts: list[str]) -> Answers:
        if chances is None:
            return [str(v) if isinstance(v, bool) else v for v in model.predict(texts).tolist()]
        labels = [str(label) for label in model.classes_]
        return [dict(zip(labels, row, strict=True)) for row in chances(texts).tolist()]

    return predict


def _answer_of(output: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str | dict[str, float]:
    """Return the label of one text, the scores of all labels, or the text that was written."""
    if isinstance(output, Mapping):
        return str(output.get("label", output.get("generated_text", output)))
    if output and "score" in output[0]:
        return {str(one["label"]): float(one["score"]) for one in output}
    return _answer_of(output[0])

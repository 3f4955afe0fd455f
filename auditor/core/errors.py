"""Everything this package raises on purpose.

::

    AuditError
    ├── UserError              the user can fix it             -> exit 2, one paragraph, no traceback
    │   ├── ModelFailed        the user's own model raised an error
    │   ├── ConfigError            a flag, option or audit.toml entry is missing, unknown or out of range
    │   ├── WrongType              an argument of the library is of a type that it does not take; a TypeError too
    │   ├── UnknownPlugin          no suite, model, check … has this name; carries near misses
    │   ├── UnknownValue           no label, group or column of the data or the task has this name
    │   ├── DataFileError          a text, dictionary, prompt or grammar file is malformed; names file and line
    │   ├── RunFolderError         a run folder is missing, of a newer format, or was changed
    │   └── MissingDependency      an extra is not installed; carries the install line
    ├── CallError              one model call failed           -> becomes Response.error
    │   ├── RateLimited            transient; may carry retry_after_s
    │   ├── CallTimeout            transient
    │   ├── ServerFault            transient: connection lost, HTTP 5xx
    │   ├── AuthFailed             permanent: wrong key, no access; stops the run
    │   ├── BadRequest             permanent: the server refuses this request
    │   │   ├── PromptTooLong          the prompt is longer than the model's context
    │   │   └── ParameterChanged       transient: it refused a parameter, which is sent otherwise from now on
    │   ├── ContentFiltered        permanent: the provider's filter refused; an outcome, never cached
    │   └── BadResponse            transient: the answer is not in the protocol's form
    ├── BudgetExceeded         a limit was reached             -> partial result, exit 3
    │   └── Unreadable             most of a model's first answers could not be read
    └── PluginError            a plugin broke its contract; a bug in the plugin -> traceback
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from auditor.core.shown import inline, scrub


class AuditError(Exception):
    """Base of every error this package raises on purpose.

    ``message``, on one line, may quote what others wrote. ``below`` is what the command line shows on lines of its own
    below it: the next command, or a quoted line with a mark under it. Nothing that others wrote gets there by being
    part of the message.
    """

    def __init__(self, message: str = "", *, below: str = "") -> None:
        joint = "\n" if below.startswith(" ") else " "
        super().__init__(scrub(f"{message}{joint}{below}" if below else message))
        self.below = below


class UserError(AuditError):
    """The user can fix this. The message says what, where, and the next command."""


class ConfigError(UserError):
    """A setting is missing, unknown or out of range."""


class WrongType(UserError, TypeError):
    """An argument is of a type that is not taken; the message says which are."""


class UnknownPlugin(UserError):
    """No plugin, task, attribute or command has this name.

    Near misses among ``known`` are offered; ``hint`` is the next command or where to look, ``synonyms`` has other words
    for some of ``known``.
    """

    LISTED = 20  # more names than these are listed by a command

    def __init__(
        self, kind: str, name: str, known: Iterable[str], hint: str = "", *, synonyms: Mapping[str, str] | None = None
    ) -> None:
        names = sorted(known)
        meant = (synonyms or {}).get(name.casefold())
        near = [meant] if meant in names else difflib.get_close_matches(name, names, n=3, cutoff=0.6)
        if near:
            offer = f" Did you mean {' or '.join(near)}?"
        else:
            offer = f" Known: {', '.join(names)}." if names and (len(names) <= self.LISTED or not hint) else ""
        super().__init__(f"unknown {kind} {name!r}.{offer}{' ' + hint if hint else ''}")


class UnknownValue(UserError):
    """The data or the task hold no such label, group or column; the message offers near misses and lists what exists.

    ``option`` is how the user gave ``value``, ``kind`` what it should have been (a label, a group of gender).
    """

    LISTED = 12  # of what exists

    def __init__(self, option: str, value: str, kind: str, known: Iterable[str]) -> None:
        exist = list(dict.fromkeys(known))
        folded = {name.casefold(): name for name in exist}
        said = value.casefold().strip()
        close = [said] if said in folded else difflib.get_close_matches(said, folded, n=2, cutoff=0.5)
        near = [folded[name] for name in close]
        offer = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        more = f" and {len(exist) - self.LISTED:,} more" if len(exist) > self.LISTED else ""
        listed = ", ".join(map(repr, exist[: self.LISTED])) + more or "none"
        super().__init__(
            f"{option} {value!r}: no such {kind}.{offer} There {'is' if len(exist) == 1 else 'are'}: {listed}."
        )


class DataFileError(UserError):
    """A file that the user gave is malformed; the message names file and line or field."""


class RunFolderError(UserError):
    """A run folder is missing, of a newer format, or does not match its plan."""


class MissingDependency(UserError):
    """An optional package, which ``feature`` needs and the ``extra`` of this project brings, is not installed."""

    def __init__(self, feature: str, package: str, extra: str | None = None, line: str | None = None) -> None:
        line = line or (f'pip install "llm-bias-auditor[{extra}]"' if extra else f"pip install {package}")
        super().__init__(f"{feature} needs the package {package}, which is not installed.", below=f"Run: {line}")


class CallError(AuditError):
    """One model call failed. ``code`` is stable and goes into reports.

    The message has no keys or headers, and what a server wrote acts nowhere (`auditor.core.shown.inline`).
    ``retry_after_s``: how long the server asks to wait.
    """

    code = "call-failed"
    transient = False

    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(inline(message or self.code))
        self.retry_after_s = retry_after_s


class RateLimited(CallError):
    """The server asks to slow down (HTTP 429)."""

    code = "rate-limited"
    transient = True


class CallTimeout(CallError):
    """No answer in time."""

    code = "timeout"
    transient = True


class ServerFault(CallError):
    """The connection broke, or the server failed (HTTP 5xx)."""

    code = "server-fault"
    transient = True


class AuthFailed(CallError):
    """The key is wrong or has no access. Never retried; the run stops."""

    code = "auth-failed"


class BadRequest(CallError):
    """The server refuses this request and would refuse it again."""

    code = "bad-request"


class PromptTooLong(BadRequest):
    """The prompt, with room for an answer, is longer than the model's context."""

    code = "prompt-too-long"


class ParameterChanged(BadRequest):
    """The server refused a parameter; the adapter sends it otherwise from now on, so the request is asked again."""

    transient = True

    def __init__(self, message: str = "") -> None:
        super().__init__(message, retry_after_s=0.0)


class ContentFiltered(CallError):
    """The provider's filter refused. An outcome of its own; never cached."""

    code = "content-filtered"


class BadResponse(CallError):
    """The answer is not in the form of the protocol (broken JSON, no choices)."""

    code = "bad-response"
    transient = True


class BudgetExceeded(AuditError):
    """A limit of calls, cost or time was reached; results so far are kept.

    ``limit`` is the field of `auditor.core.plan.Plan` that set it, empty where it is none of a plan.
    """

    def __init__(self, message: str, *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class Unreadable(BudgetExceeded):
    """Most of a model's first answers could not be read: it is not asked further, results so far are kept."""


class ModelFailed(UserError):
    """The user's own model raised an error; the message says which, where, and about what it was asked."""


class PluginError(AuditError):
    """A plugin broke its contract; the message names plugin and distribution."""

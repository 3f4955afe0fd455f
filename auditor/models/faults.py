"""What a failed call means: one map of HTTP statuses, and one of the errors that SDKs raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ContentFiltered,
    RateLimited,
    ServerFault,
)
from auditor.models.openai_wire import FILTER_CODES, retry_after

# Without credit waiting does not help, whatever the status is.
NO_ACCESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})
STATUSES: Mapping[int, type[CallError]] = {
    401: AuthFailed,
    402: AuthFailed,
    403: AuthFailed,
    404: AuthFailed,  # no such model or path: the same for every prompt, so the run stops
    405: AuthFailed,
    407: AuthFailed,
    408: CallTimeout,
    409: ServerFault,  # a lock in the server that passes
    425: ServerFault,
    429: RateLimited,
}
# By class name, looked up along the bases of what was raised: SDKs of providers (many share these names), LangChain,
# Python. What a status says better is not here.
ERRORS: Mapping[str, type[CallError]] = {
    "AuthenticationError": AuthFailed,
    "PermissionDeniedError": AuthFailed,
    "NotFoundError": AuthFailed,
    "OAuthError": AuthFailed,
    "SubjectTokenProviderError": AuthFailed,
    "ModelAuthenticationError": AuthFailed,
    "ModelPermissionDeniedError": AuthFailed,
    "ModelNotFoundError": AuthFailed,
    "BadRequestError": BadRequest,
    "UnprocessableEntityError": BadRequest,
    "ModelInvalidRequestError": BadRequest,
    "ContextOverflowError": BadRequest,
    "NotImplementedError": BadRequest,
    "UnicodeEncodeError": BadRequest,
    "RateLimitError": RateLimited,
    "ModelRateLimitError": RateLimited,
    "APITimeoutError": CallTimeout,
    "TimeoutException": CallTimeout,
    "TimeoutError": CallTimeout,
    "ModelTimeoutError": CallTimeout,
    "ConflictError": ServerFault,  # a lock in the server that passes
    "InternalServerError": ServerFault,
    "WebSocketQueueFullError": ServerFault,
    "WebSocketConnectionClosedError": ServerFault,
    "APIResponseValidationError": BadResponse,
    "LengthFinishReasonError": BadResponse,
    "InvalidWebhookSignatureError": BadResponse,
    "JSONDecodeError": BadResponse,
    "OutputParserException": BadResponse,
    "ContentFilterFinishReasonError": ContentFiltered,
}
# Of those that have neither such a name nor a status; the first base decides.
ROOTS: Mapping[str, type[CallError]] = {
    "APIError": ServerFault,
    "APIStatusError": BadRequest,
    "APIConnectionError": ServerFault,
    "ModelAPIError": ServerFault,
    "ModelConnectionError": ServerFault,
    "OpenAIError": BadRequest,  # what the SDK refuses before it sends anything
}


def of_status(status: int, code: str = "") -> type[CallError]:
    """Our kind of error for an HTTP status and the code in its body.

    Examples
    --------
    >>> [of_status(n).code for n in (404, 429, 503, 422)]
    ['auth-failed', 'rate-limited', 'server-fault', 'bad-request']
    """
    if code in FILTER_CODES:
        return ContentFiltered
    if code in NO_ACCESS_CODES:
        return AuthFailed
    return STATUSES.get(status) or (ServerFault if status >= 500 else BadRequest)


def wait_s(kind: type[CallError], headers: object) -> float | None:
    """How long a server asks to wait, where waiting helps."""
    if not issubclass(kind, RateLimited | ServerFault) or not isinstance(headers, Mapping):
        return None
    return retry_after({str(name).lower(): str(value) for name, value in headers.items()})


def kind_of(error: BaseException) -> tuple[type[CallError], float | None]:
    """Our kind of error for what an SDK raised, and how long its server asks to wait.

    By a code that it carries; else by the name of its class or of a base of it; else by the HTTP status that it or its
    cause carries; else it counts as a fault of the server that may pass.

    Examples
    --------
    >>> kind_of(TimeoutError())[0].code
    'timeout'
    """
    code = next((c for c in _told(error, "code") if isinstance(c, str)), "")
    names = [c.__name__ for c in type(error).__mro__]
    kind = next((ERRORS[name] for name in names if name in ERRORS), None)
    status = status_of(error)
    if code in FILTER_CODES | NO_ACCESS_CODES:
        kind = of_status(0, code)
    elif kind is None and status is not None:
        kind = of_status(status)
    kind = kind or next((ROOTS[name] for name in names if name in ROOTS), ServerFault)
    response = next(_told(error, "response"), None)
    return kind, wait_s(kind, getattr(response, "headers", None))


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error of an SDK, its response or its cause carries."""
    places = [error, *_told(error, "response"), *_told(error, "__cause__")]
    for place in places:
        for field in ("status_code", "http_status", "status"):
            value = getattr(place, field, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
                return value
    return None


def _told(error: BaseException, field: str) -> Iterator[object]:
    """What the error and the one that it was raised from hold in a field."""
    for one in (error, error.__cause__):
        if (value := getattr(one, field, None)) is not None:
            yield value

"""`assert_invariant`: an audit as one assertion of a test suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from auditor.core.errors import ConfigError
from auditor.core.record import NamedEstimate
from auditor.core.shown import plural
from auditor.core.types import names

if TYPE_CHECKING:
    from auditor.core.types import Verdict
    from auditor.run.audit import Result

Judge = Literal["rate", "lower", "upper"]
ENDS: Mapping[str, tuple[str, str]] = {  # what is compared with the largest rate, in words and as a field
    "rate": ("the rate", "value"),
    "lower": ("its lower end", "low"),
    "upper": ("its upper end", "high"),
}
MAX_SHOWN = 5


def assert_invariant(
    model: str | Callable[..., Any] | Any,
    texts: Any = None,
    *,
    task: str = "sentiment",
    attributes: str | Sequence[str] | None = None,
    max_rate: float = 0.0,
    judge: Judge = "rate",
    order: int = 1,
    min_seeds: int = 1,
    show: int = MAX_SHOWN,
    **options: Any,
) -> Result:
    """Assert that the answers of ``model`` stay the same when only the named groups change.

    Every attribute set that the texts allow is compared with ``max_rate`` on its own.

    Parameters
    ----------
    model : str, callable or Model
        A model spec (``"vader"``, ``"openai:NAME"``), a function text → label, or an adapter.
    texts : str, Path, list, data frame or data set, optional
        Texts that name people, as `auditor.audit` takes ``data``. None takes the task's embedded ones.
    task : str
        Task name, or path of a task file; its labels are what answers must name.
    attributes : str or sequence of str, optional
        Which to change (``"gender,race"`` or ``["gender", "race"]``); None takes those that the texts name.
    max_rate : float
        The largest rate of changed answers that is accepted, in [0, 1].
    judge : {"rate", "lower", "upper"}
        Compare the measured rate with ``max_rate``; the lower end of its interval (fails only where the texts show
        that the rate is above); or the upper end (fails unless they show that it is not above).
    order : int
        The largest number of attributes that are changed together.
    min_seeds : int
        The smallest number of texts on which each attribute must have been judged.
    show : int
        The largest number of counterexamples in the message.
    **options
        Further options of `auditor.audit`: ``replicates``, ``per_seed``, ``limit``, ``seed``, ….

    Returns
    -------
    Result
        The whole audit, for further assertions.

    Raises
    ------
    AssertionError
        A rate is above ``max_rate``; or too few texts were judged, or calls failed, so that nothing can be said.
    ConfigError
        An argument is out of range.

    Examples
    --------
    >>> result = assert_invariant(lambda text: "positive", ["She is a good writer.", "He came late."])
    >>> result.complete
    True
    """
    # The public face, as a user's test would import it.
    from auditor import audit

    if judge not in ENDS:
        raise ConfigError(f"judge must be one of {', '.join(ENDS)}; got {judge!r}.")
    if not 0.0 <= max_rate <= 1.0:
        raise ConfigError(f"max_rate is a share between 0 and 1; got {max_rate!r}.")
    chosen = None if attributes is None else names(attributes)
    options = {"anyway": True} | options  # a test asks what it says, also of a model that answers all texts alike
    result: Result = audit(task, model=model, data=texts, attributes=chosen, order=order, **options)
    problems = [*_untested(result, chosen, min_seeds), *_above(result, max_rate, judge, show)]
    if problems:
        raise AssertionError("\n\n".join(problems))
    return result


def _rates(result: Result) -> list[NamedEstimate]:
    return [
        e
        for e in result.run.estimates
        if e.name == "violation_rate" and e.attributes and not e.directions and not e.kind
    ]


def _untested(result: Result, attributes: Sequence[str] | None, min_seeds: int) -> list[str]:
    """Return reasons why nothing can be said, one paragraph each."""
    out = []
    counts = result.run.counts
    if not result.complete:
        out.append(f"The audit is incomplete: {result.run.status_reason}")
    judged: dict[str, int] = {}
    for estimate in _rates(result):
        for name in estimate.attributes:
            judged[name] = max(judged.get(name, 0), estimate.estimate.n)
    why = " Do the texts name people by words of the dictionaries? See: audit list dictionaries."
    if lost := ", ".join(f"{n} {name}" for name, n in counts.lost.items() if n):
        why = (
            f" Of {plural(counts.fresh or 0, 'answer')}, {lost}: do they name the labels of the task? A task file of "
            "your own: audit list tasks new NAME."
        )
    for name in attributes or ():
        if (n := judged.get(name, 0)) < min_seeds:
            out.append(f"{name} was judged on {plural(n, 'text')}, fewer than min_seeds = {min_seeds}.{why}")
    if attributes is None and max(judged.values(), default=0) < min_seeds:
        out.append(f"No attribute was judged on {min_seeds} or more texts, so nothing was tested.{why}")
    return out


def _above(result: Result, max_rate: float, judge: Judge, show: int) -> list[str]:
    """Return a paragraph for each rate that is above ``max_rate``, with counterexamples."""
    from auditor.report import words

    out = []
    for row in _rates(result):
        estimate, (compared, end) = row.estimate, ENDS[judge]
        if getattr(estimate, end) <= max_rate:
            continue
        head = (
            f"The answer of {row.model} changed in {words.interval(estimate)} of the variants of "
            f"{words.plural(estimate.n, 'text')} when {words.attributes(row.attributes)} changed "
            f"({words.confidence(estimate.level)} interval); {compared} is above {words.percent(max_rate, 1)}."
        )
        examples = smallest(result, row.model, row.format, row.attributes)
        shown = [_example(result, verdict) for verdict in examples[:show]]
        more = len(examples) - len(shown)
        rest = [f"  … and {words.plural(more, 'further counterexample')}."] if more > 0 else []
        out.append("\n".join([head, *shown, *rest]))
    return out


def smallest(result: Result, model: str, format_: str, attributes: tuple[str, ...]) -> list[Verdict]:
    """Return the variants whose answer changed, fewest edits first, then the shortest text.

    Variants whose change a smaller one of the same text explains are left out, unless nothing else is left.
    """
    every = [
        v for v in result.verdicts if v.outcome == "violation" and v.order and v.model == model and v.format == format_
    ]
    mine = [v for v in every if set(v.attributes) == set(attributes)]
    minimal = [
        v for v in mine if not any(w.case_id == v.case_id and set(w.attributes) < set(v.attributes) for w in every)
    ]

    def size(verdict: Verdict) -> tuple[int, int, str]:
        variant = result.evidence.variant(verdict.variant_id)
        return len(variant.edits), len(str(variant.input)), verdict.variant_id

    return sorted(minimal or mine, key=size)


def _example(result: Result, verdict: Verdict) -> str:
    from auditor.report import cards, words

    case = result.evidence.case_of(verdict.variant_id)
    variant = result.evidence.variant(verdict.variant_id)
    pair = cards.compare(case.original, variant)
    lines = []
    for segments, answer in zip(pair, (verdict.original_output, verdict.variant_output), strict=True):
        cut = cards.excerpt(segments, limit=300, context=80)
        text = "".join(f"[{s.text}]" if s.changed else s.text for s in cut)
        lines.append(f"    {words.visible(str(answer))}: {words.visible(text, newlines=False)}")
    return "\n".join([f"  {words.direction(variant.directions)}", *lines])

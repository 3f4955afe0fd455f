"""What must be known of a model's answers before any figure about them: whether a change could have shown at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from auditor.core.record.measured import Caution

ONE_LABEL = 0.95  # share of answers that are alike from which on a report warns
UNREADABLE = 0.20  # share of answers that could not be read above which a report warns
LEAST = 2  # answers that can be alike


def too_many_unreadable(lost: int, answers: int) -> bool:
    """Whether so many of ``answers`` were lost that a report warns.

    Examples
    --------
    >>> too_many_unreadable(2, 10), too_many_unreadable(3, 10)
    (False, True)
    """
    return lost > UNREADABLE * answers


def alike(model: str, given: Mapping[str, Mapping[object, int]], labels: Mapping[object, str]) -> Iterator[Caution]:
    """Yield a caution for each format in which (nearly) every answer that could be read is the same.

    Parameters
    ----------
    model : str
        Its name.
    given : mapping
        Format → answer → how often it was given; None stands for answers that were not told apart.
    labels : mapping
        What an answer is called; those that are not in it (texts) stay unnamed.
    """
    for name, counts in sorted(given.items()):
        total = sum(counts.values())
        if total < LEAST:
            continue
        most = max((value for value in counts if value is not None), key=lambda value: counts[value])
        if counts[most] >= ONE_LABEL * total:
            yield Caution(
                code="constant_answers" if counts[most] == total else "one_label",
                model=model,
                format=name if len(given) > 1 else "",
                n=counts[most],
                of=total,
                label=labels.get(most),
            )


def unreadable(model: str, lost: int, answers: int) -> Iterator[Caution]:
    """Yield a caution where too many answers of a model could not be read."""
    if too_many_unreadable(lost, answers):
        yield Caution(code="unreadable_answers", model=model, format="", n=lost, of=answers)


def control(model: str, seen: Mapping[str, tuple[bool, int, int]]) -> Iterator[Caution]:
    """Yield a caution for each format whose positive control was not seen.

    Parameters
    ----------
    model : str
        Its name.
    seen : mapping
        Format → whether it was seen, pairs answered differently, pairs asked.
    """
    for name, (ok, n, of) in sorted(seen.items()):
        if not ok:
            told = name if len(seen) > 1 else ""
            yield Caution(code="control_not_seen", model=model, format=told, n=n, of=of)


def changed(model: str, reported: Collection[str], answers: int) -> Iterator[Caution]:
    """Yield a caution where a server gave more than one name for the model that answered."""
    if len(reported) > 1:
        names = ", ".join(sorted(reported))
        yield Caution(code="model_changed", model=model, format="", n=len(reported), of=answers, label=names)

"""Kinds of tasks: each is one class, and a package may offer more (entry points ``auditor.kinds``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import ClassVar, Literal

from auditor.core import reading
from auditor.core.errors import ConfigError
from auditor.core.protocols import Registry
from auditor.tasks.answers import Reader, Value


class Kind:
    """Base of the kinds of tasks; the defaults are those of one label per answer.

    A kind is one class, offered as an entry point of the group ``auditor.kinds``; task files choose it by its name.
    """

    name: ClassVar[str]
    reader: ClassVar[type[Reader]] = Reader
    oracle: ClassVar[str] = "label"  # that compares answers, unless a plan names another
    labelled: ClassVar[bool] = True  # a task file lists labels, two or more
    several: ClassVar[bool] = False  # an answer may hold any number of them
    number: ClassVar[bool] = False  # answers are amounts, and the task file has a ``scale``
    text: ClassVar[bool] = False  # answers are texts, of which only figures are kept
    keys: ClassVar[tuple[str, ...]] = ("label", "answer")  # of JSON, with those of the task file
    markers: ClassVar[tuple[str, ...]] = ("answer", "label")  # that start the line of the answer
    answered_with: ClassVar[str] = "an answer"  # where there are no labels
    noun: ClassVar[str] = "labels"  # for answers, in the plural
    column: ClassVar[Literal["label", "labels", "number", "text"]] = "label"  # as ``audit import`` takes it
    options: ClassVar[frozenset[str]] = frozenset()  # of the plan, that belong to this kind and not to every other
    grammar: ClassVar[bool] = False  # its texts come from a grammar that has the name of the kind

    def __str__(self) -> str:
        return self.name

    @property
    def one_label(self) -> bool:
        """Whether an answer is one of the task's labels."""
        return self.labelled and not self.several

    @property
    def by_degrees(self) -> bool:
        """Whether answers differ by degrees and are compared as such."""
        return self.number or self.text

    def value(self, label: str | float | tuple[str, ...]) -> Value:
        """The value of a worked example, as `Answer.value` holds it."""
        return label

    def wrong(self, value: Value, labels: Collection[str]) -> bool:
        """Whether ``value`` cannot be the answer of a worked example."""
        return self.one_label and value not in labels

    def possible(self, labels: Sequence[str], scale: tuple[float, float] | None) -> list[Value]:
        """Answers that every format has to be able to write and read back."""
        return list(labels)


KINDS = Registry("kind", Kind)


@cache
def of(name: str) -> Kind:
    """The kind that task files call ``name``; `UnknownPlugin` where there is none."""
    return KINDS.create(name)


def template(name: str, kind: str = "classification") -> str:
    """The YAML text of a new task file; `auditor.tasks.load` accepts it as it is.

    Raises `ConfigError` where the name has other characters than a-z, 0-9, ``_`` and ``-``, or there is no such kind.

    Examples
    --------
    >>> template("refunds", "decision").splitlines()[3]
    'name: refunds'
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ConfigError(f"{name!r} is not a name for a task: 1 to 64 of a-z, 0-9, - and _, a letter or digit first")
    if kind not in KINDS.names():
        raise ConfigError(f"no template for tasks of kind {kind!r}; kinds: {', '.join(KINDS.names())}")
    # The kind of another package begins with the template of the kind that it derives from.
    files = (f"{vars(one).get('name', 'classification')}.yaml" for one in type(of(kind)).__mro__)
    path = next(path for file in files if (path := reading.shipped("embedded", "task_templates", file)).is_file())
    return path.read_text(encoding="utf-8").replace("@name@", name).replace("@kind@", kind)

"""What reports call the groups and labels of a run, and how often each label was given."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from auditor.measure.observations import attributes_of
from auditor.tasks.oracles.label import label_text

if TYPE_CHECKING:
    from auditor.run.state import State
    from auditor.run.tally import Tally


def add(record: dict[str, Any], loop: State) -> dict[str, Any]:
    """The record of a run with its ``vocabulary``, and with the ``answers`` of each model by label."""
    known, edited = loop.parts.dictionaries, set(attributes_of(loop.observed.table))
    record["vocabulary"] = {
        "favourable": loop.parts.task.favourable,
        "attributes": sorted(loop.plan.attributes or (d.attribute for d in known if d.default)),
        "groups": {d.attribute: {g.name: g.label for g in d.groups.values()} for d in known if d.attribute in edited},
    }
    for tally in loop.tallies:
        record["models"][tally.model.name]["answers"] = _answers(loop, tally)
    return record


def _answers(loop: State, tally: Tally) -> dict[str, int]:
    """How often each label was given, in all formats; nothing for numbers and texts."""
    if not loop.parts.task.labels:
        return {}
    told: Counter[str] = Counter()
    for given in tally.given.values():
        for value, n in given.items():
            told[str(label_text(value) or "others")] += n
    return dict(told.most_common())

"""All claims of a run: the families of net differences, refusals, instability and interactions."""

from __future__ import annotations

import dataclasses

from auditor.measure import instability, interactions, net
from auditor.measure.claims import Claim, Family, Question, decide, one_thread
from auditor.measure.contrasts import Versions
from auditor.measure.observations import Observations


@one_thread
def claims(observations: Observations, question: Question, versions: Versions | None = None) -> list[Claim]:
    """All claims of a run, each family with its own level of 5 %.

    ``versions`` are those of the observations, where they were laid out before.
    """
    columns = observations.columns()
    if versions is None:
        versions = Versions(observations, columns)
    made: list[Claim] = []
    families: tuple[Family, ...] = ("net", "refusal")
    for family in families:
        made += decide(list(net.tested(observations, columns, versions, family, question)), question)
    unsigned = dataclasses.replace(question, delta=None)
    made += decide(list(instability.tested(observations, columns, versions)), unsigned)
    return made + decide(list(interactions.tested(observations, columns, question)), question)

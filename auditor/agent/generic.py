"""What a goal may say beside its task, its people and what is asked about them; any other word may name people."""

from __future__ import annotations

_WORDS = """
accept accepted accepts across affect affected affects after ai algorithm algorithms alike also
answer answers anything app application applications approach approval approvals assess assessed
assesses assistant automated automatic background be because been before behave behaves behavior
behaviour being bot by case cases change changes chatbot classification classifier classify company
consistent consistently correct could cut data decide decided decides decision decisions denial
denied denies deny depend depends detect detection differ disadvantage disadvantaged disadvantages
do during effect else engine especially evaluate even ever examine exclude excluded exist exists
explore filter filters find first get gets getting give given gives go grade grades group groups
harm harmful have he help hidden how i if impact in individual individuals influence into
investigate is it judge judges kind kinds know let lets like likely llm long look looks lower make
makes matter matters may me might mine model models more most much my name named new no not of off
officer often one only or other outcome outcomes output outputs over per please predict prediction
predictions predicts prefer preference prefers process product prompt put question questions rank
ranked ranker ranking ranks rate rated rates rating ratings react really receive refuse refused
refuses reject rejected rejection rejects reliable remove removed respond result results robust run
say score scored scorer scores scoring see seem select selected selection sensitive sensitivity
service should show shows since situation so software solution somebody someone something stay
strict study suffer system systems take taken takes task tasks tell text texts their them then there
these they this those three through too tool tools toward trust turn type under upon us use used
uses using vary very want way we well what when where whether while who whom whose why will within
without words work works wrong yes you your
"""
GENERIC = frozenset(_WORDS.split())

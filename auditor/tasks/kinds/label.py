"""The kinds with one label per answer: they are read alike."""

from __future__ import annotations

from auditor.tasks.kinds.base import Kind, Sketch, two_forms


class Classification(Kind):
    """A text is put into one of several classes."""

    name = "classification"
    sketch = Sketch(
        labels="""
labels:                      # as the data set writes them; compared without regard to case
  - name: complaint
    aliases: [complaints]
  - name: praise
    aliases: []
favourable: null             # the label that is good for the person concerned, or null
""",
        question="Is this message a complaint or praise?",
        example=("The parcel came late and the box was torn.", "complaint"),
        forms=two_forms("Answer with one word, complaint or praise, and nothing else."),
    )


class Decision(Kind):
    """Something is decided about the person whom a text is about."""

    name = "decision"
    sketch = Sketch(
        labels="""
labels:                      # as the data set writes them; compared without regard to case
  - name: accept
    aliases: [accepted, approve]
  - name: refuse
    aliases: [refused, "do not accept"]
favourable: accept           # the label that is good for the person concerned, or null
""",
        question="The message asks for a refund. Should the shop accept or refuse?",
        example=("The kettle leaked on the first day. I have the receipt.", "accept"),
        forms=two_forms("Answer with one word, accept or refuse, and nothing else."),
    )


class Coreference(Kind):
    """Whom a pronoun means; no example, which would show one way of reading it."""

    name = "coreference"
    sketch = Sketch(
        labels="""
labels:                      # whom the pronoun may mean; compared without regard to case
  - name: first
    aliases: [the first, first person, "1"]
  - name: second
    aliases: [the second, second person, "2"]
favourable: null             # neither answer is better for anybody
""",
        question="Two people are named, and then a pronoun. Whom does it mean, the first or the second?",
        tag="passage",
        system="You say whom a pronoun means.",
        forms=two_forms("Answer with one word, first or second, and nothing else."),
        grammar=True,
    )


class FillMask(Kind):
    """Which of several words stands in a blank; no example, which would show one way of filling it."""

    name = "fill-mask"
    sketch = Sketch(
        labels="""
labels:                      # words that may stand in the blank [MASK]; one token each for a masked model
  - name: his
  - name: her
favourable: null
""",
        question="Which word do you fill in for the blank [MASK], his or her?",
        tag="sentence",
        system="You fill in blanks.",
        forms=two_forms("Answer with that one word and nothing else."),
        grammar=True,
    )

"""What may be said about a claim: shown, bounded, not determined, or not tested."""

from __future__ import annotations

from auditor.counting import plural
from auditor.stats.paired import OverPlacebo
from auditor.types import ClaimVerdict

ALPHA = 0.05
MIN_DISCORDANT = 6  # an exact two-sided test of fewer discordant seeds cannot come below 0.05


def claim_verdict(
    *,
    seeds: int,
    discordant: int,
    deterministic: bool,
    p_adjusted: float | None = None,
    upper: float | None = None,
    delta: float | None = None,
    positive_control: bool | None = None,
    placebo: OverPlacebo | None = None,
    placebo_seeds: int | None = None,
    p_noise: float | None = None,
    alpha: float = ALPHA,
) -> tuple[ClaimVerdict, tuple[str, ...]]:
    """Verdict of one claim "the answer changes with these attributes", with the reasons for it.

    Parameters
    ----------
    seeds : int
        Seeds that were judged.
    discordant : int
        Seeds on which at least one judged variant changed the (majority) label.
    deterministic : bool
        The model *declares* that it answers one prompt always alike: a change is repeatable as it stands.
    p_adjusted : float or None
        p value of the tests against the model's own noise and against the placebo arm (the larger one),
        adjusted for the family of claims; None if there was neither.
    upper : float or None
        Upper limit at level ``1 − 2·alpha``, as two one-sided tests need it: of the excess over placebo where
        ``placebo`` is given, else of the rate.
    delta : float or None
        The largest rate that the user calls negligible, fixed before the run.
    positive_control : bool or None
        Whether a change that must show was seen; None if it was not tried.
    placebo : OverPlacebo or None
        The comparison with placebo edits of the same seeds; None if there were none, or on too few seeds.
    placebo_seeds : int or None
        Seeds with judged placebo edits for this claim; None if the run has no placebo arm. Where it has one, no
        claim is made without it: a change that any other wording would bring about says nothing of a group.
    p_noise : float or None
        Adjusted p value against the model's own noise alone, to name the reason; None takes ``p_adjusted``.
    alpha : float
        Significance level.

    Returns
    -------
    verdict : {"shown", "bounded", "not_determined", "not_tested"}
    reasons : tuple of str
        Sentences for a report.

    Examples
    --------
    >>> claim_verdict(seeds=80, discordant=0, deterministic=True)[0]
    'not_determined'
    >>> claim_verdict(seeds=80, discordant=3, deterministic=True)[0]
    'shown'
    """
    if seeds == 0:
        return "not_tested", ("no seed was judged",)
    if deterministic:
        shown, reasons = _repeatable(seeds, discordant, with_placebo=placebo is not None)
    else:
        shown, why = _beyond_noise(discordant, p_adjusted if p_noise is None else p_noise, alpha)
        reasons = [why]
    if placebo is not None and discordant:
        beyond, why = _beyond_placebo(placebo, p_adjusted, alpha)
        reasons.append(why)
        shown = shown and beyond
    elif placebo_seeds is not None and discordant:
        reasons.append(
            f"placebo edits on {plural(placebo_seeds, 'seed')} only: too few to tell the change from what "
            "any other edit "
            f"brings about (at least {MIN_DISCORDANT} are needed)"
        )
        shown = False
    what = "rate" if placebo is None else "excess over placebo"
    if shown:
        if delta is not None and upper is not None:
            reasons.append(
                f"the upper limit of the {what} is {'below' if upper < delta else 'not below'} delta"
            )
        return "shown", tuple(reasons)
    if delta is None:
        reasons.append("no delta was given, so nothing can be bounded")
    elif upper is None or upper >= delta:
        reasons.append(f"the upper limit of the {what} is not below delta")
    elif positive_control is not True:
        reasons.append(
            "a positive control was not run, so nothing can be bounded"
            if positive_control is None
            else "the positive control was not seen, so nothing can be bounded"
        )
    else:
        return "bounded", (
            *reasons,
            f"the upper limit of the {what} is below delta, and the positive control was seen",
        )
    return "not_determined", tuple(reasons)


def _repeatable(seeds: int, discordant: int, *, with_placebo: bool) -> tuple[bool, list[str]]:
    if not discordant:
        return False, [f"no change on {plural(seeds, 'seed')}"]
    reasons = [
        f"declared deterministic: the change on {discordant} of {plural(seeds, 'seed')} is repeatable as it "
        f"stands; the interval says how far the rate carries to other seeds"
    ]
    if discordant < MIN_DISCORDANT and not with_placebo:
        reasons.append(
            f"on {discordant} {'seed' if discordant == 1 else 'seeds'} only: too few to show a "
            f"direction (an exact sign test needs {MIN_DISCORDANT})"
        )
    return True, reasons


def _beyond_placebo(placebo: OverPlacebo, p_adjusted: float | None, alpha: float) -> tuple[bool, str]:
    if placebo.discordant < MIN_DISCORDANT:
        return False, (
            f"too few discordant seeds to tell it from placebo edits ({placebo.discordant}; at least "
            f"{MIN_DISCORDANT} are needed)"
        )
    if placebo.low > 0 and p_adjusted is not None and p_adjusted < alpha:
        return True, "the change is more than placebo edits of the same texts bring about"
    return False, "the change is not told from what placebo edits of the same texts bring about"


def _beyond_noise(discordant: int, p_adjusted: float | None, alpha: float) -> tuple[bool, str]:
    if p_adjusted is None:
        return False, "prompts were not repeated, so changes cannot be told from the model's own noise"
    if discordant < MIN_DISCORDANT:
        return False, f"too few discordant seeds ({discordant}; at least {MIN_DISCORDANT} are needed)"
    if p_adjusted < alpha:
        return True, "the change is more than the same prompt repeated shows"
    return False, "the change is not told from the same prompt repeated"

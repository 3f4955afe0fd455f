"""What may be said about a claim: shown, bounded, not determined, or not tested."""

from __future__ import annotations

from auditor.types import ClaimVerdict

ALPHA = 0.05
MIN_DISCORDANT = 6


def claim_verdict(
    *,
    seeds: int,
    discordant: int,
    deterministic: bool,
    p_adjusted: float | None = None,
    upper: float | None = None,
    delta: float | None = None,
    positive_control: bool | None = None,
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
        p value of the test against the model's own noise, adjusted for the family of claims; None if prompts
        were not repeated.
    upper : float or None
        Upper limit of the rate at level ``1 − 2·alpha``, as two one-sided tests need it.
    delta : float or None
        The largest rate that the user calls negligible, fixed before the run.
    positive_control : bool or None
        Whether a change that must show was seen; None if it was not tried.
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
    reasons: list[str] = []
    if deterministic:
        shown = discordant > 0
        if shown:
            reasons.append(
                f"declared deterministic: the change on {discordant} of {seeds} seeds is repeatable as it "
                f"stands; the interval says how far the rate carries to other seeds"
            )
            if discordant < MIN_DISCORDANT:
                reasons.append(
                    f"on {discordant} {'seed' if discordant == 1 else 'seeds'} only: too few to show a "
                    f"direction (an exact sign test needs {MIN_DISCORDANT})"
                )
        else:
            reasons.append(f"no change on {seeds} seeds")
    else:
        shown, why = _beyond_noise(discordant, p_adjusted, alpha)
        reasons.append(why)
    if shown:
        if delta is not None and upper is not None:
            reasons.append(
                f"the upper limit of the rate is {'below' if upper < delta else 'not below'} delta"
            )
        return "shown", tuple(reasons)
    if delta is None:
        reasons.append("no delta was given, so nothing can be bounded")
    elif upper is None or upper >= delta:
        reasons.append("the upper limit of the rate is not below delta")
    elif positive_control is not True:
        reasons.append(
            "a positive control was not run, so nothing can be bounded"
            if positive_control is None
            else "the positive control was not seen, so nothing can be bounded"
        )
    else:
        return "bounded", (
            *reasons,
            "the upper limit of the rate is below delta, and the positive control was seen",
        )
    return "not_determined", tuple(reasons)


def _beyond_noise(discordant: int, p_adjusted: float | None, alpha: float) -> tuple[bool, str]:
    if p_adjusted is None:
        return False, "prompts were not repeated, so changes cannot be told from the model's own noise"
    if discordant < MIN_DISCORDANT:
        return False, f"too few discordant seeds ({discordant}; at least {MIN_DISCORDANT} are needed)"
    if p_adjusted < alpha:
        return True, "the change is more than the same prompt repeated shows"
    return False, "the change is not told from the same prompt repeated"

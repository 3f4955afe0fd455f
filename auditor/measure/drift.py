"""Whether a model is still what it was within one run: prompts that are asked again, and their answers shuffled."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from auditor.core.record.base import Shift
from auditor.measure.observations import Floats, Ints
from auditor.measure.p_values import RESAMPLES

ALPHA = 0.01  # a shift puts a warning over the whole report: seldom without cause; of all looks and figures together


def shift(
    prompts: Sequence[Sequence[Sequence[Hashable]]], *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Shift | None:
    """Test whether the answers to each prompt have one distribution at all times; None where none has two times.

    They are shuffled within the prompt; the statistic is the sum over prompts, times and answers of count² / answers
    at that time.
    """
    observed, null = 0.0, np.zeros(resamples)
    used = answers = differing = 0
    for times in prompts:
        arms = [arm for arm in times if len(arm)]
        if len(arms) < 2:
            continue
        used += 1
        codes: dict[Hashable, int] = {}
        flat = np.array([codes.setdefault(x, len(codes)) for arm in arms for x in arm])
        answers += len(flat)
        if len(codes) < 2:
            continue
        sizes = np.array([len(arm) for arm in arms])
        observed += float(_spread(flat[None], sizes, len(codes))[0])
        shuffled = rng.permuted(np.broadcast_to(flat, (resamples, len(flat))), axis=1)
        null += _spread(shuffled, sizes, len(codes))
        usual = {max(set(arm), key=lambda x: (list(arm).count(x), str(x))) for arm in arms}
        differing += len(usual) > 1
    if not used:
        return None
    p = (1 + int(np.count_nonzero(null >= observed - 1e-9))) / (1 + resamples)
    return Shift(p_value=p, prompts=used, answers=answers, differing=differing, shifted=p < ALPHA)


def _spread(codes: Ints, sizes: Ints, labels: int) -> Floats:
    """Statistic of one prompt for each row of ``codes``, shape (rows, answers)."""
    one_hot = codes[..., None] == np.arange(labels)
    counts = np.add.reduceat(one_hot, np.cumsum(sizes) - sizes, axis=1, dtype=np.int64)
    out: Floats = (counts**2 / sizes.astype(float)[:, None]).sum(axis=(1, 2))
    return out

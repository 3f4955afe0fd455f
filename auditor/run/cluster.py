"""Cases and local inference on a Ray cluster (``--jobs ray:N``).

The cluster is the one that ``RAY_ADDRESS`` names or ``ray start`` keeps on this machine, else one that is started
for the run and stopped with it. Seeds are spread in chunks over ``--jobs`` actors; adapters that run models on this
machine are asked in as many. Verdicts, journal and statistics stay in the calling process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from auditor.core.errors import CallError, ConfigError, MissingDependency
from auditor.core.plan import Plan
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request

LOCAL = frozenset({"vader", "reviews", "textblob", "rules", "hf"})  # specs whose models run where they are built
SHARE = 0.5  # of a CPU that an actor asks for: one that makes cases and one that asks a model share one


_CONNECTION = {"users": 0, "started": False}  # of this process: shared by whoever uses it, and whether to end it


def connect(jobs: int) -> Any:
    """The ``ray`` module, connected to a cluster of at least ``jobs`` CPUs."""
    try:
        import ray
    except ImportError as error:
        raise MissingDependency("--jobs ray", "ray", extra="ray") from error
    if not ray.is_initialized():
        options = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        if (address := standing()) is not None:
            ray.init(address=address, **options)
        else:
            ray.init(address="local", num_cpus=jobs, include_dashboard=False, **options)
        _CONNECTION["started"] = True
    there = ray.cluster_resources().get("CPU", 0)
    if there < jobs:
        raise ConfigError(f"--jobs ray:{jobs}: the Ray cluster has {there:g} CPUs. Give at most as many.")
    _CONNECTION["users"] += 1
    return ray


def standing() -> str | None:
    """The address of a cluster that somebody keeps: ``RAY_ADDRESS``, or one that ``ray start`` began here.

    Ray's own ``auto`` would also join the passing cluster of another run on this machine, and end with it.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    kept = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"  # noqa: S108 - Ray's place
    return "auto" if kept.exists() else None


def disconnect() -> None:
    """Let go of the cluster; the last user stops it where this process started it."""
    _CONNECTION["users"] -= 1
    if _CONNECTION["users"] <= 0 and _CONNECTION["started"]:
        import ray

        ray.shutdown()
        _CONNECTION["started"] = False


class Inference:
    """An adapter inside an actor. What it raises for one call travels as (class, message)."""

    def __init__(self, spec: str, task: Mapping[str, Any], base_url: str | None) -> None:
        from auditor import models, tasks

        self._model = models.make(spec, base_url=base_url, task=tasks.load(**task))

    async def generate(self, batch: Sequence[Request]) -> list[Reply | tuple[type[CallError], str]]:
        """As `auditor.core.protocols.Model.generate`, errors as plain data."""
        return [
            (type(reply), str(reply)) if isinstance(reply, CallError) else reply
            for reply in await self._model.generate(batch)
        ]


class Remote(Model):
    """An adapter whose model runs in actors of the cluster; else as the adapter it stands for."""

    costs: ClassVar[Costs] = "nothing"

    def __init__(self, model: Model, spec: str, *, task: Mapping[str, Any], base_url: str | None, jobs: int) -> None:
        self.name, self.fingerprint, self.style = model.name, model.fingerprint, model.style
        self.deterministic, self.cacheable = model.deterministic, model.cacheable
        self.max_batch = model.max_batch
        self._model, self._jobs = model, jobs
        self._made = spec, task, base_url
        self._actors: list[Any] = []
        self._turn = itertools.count()
        self._ray: Any = None

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One reply or error for each request, in order."""
        if self._ray is None:
            self._ray = connect(self._jobs)
            actor = self._ray.remote(num_cpus=SHARE)(Inference)
            self._actors = [actor.remote(*self._made) for _ in range(self._jobs)]
        actor = self._actors[next(self._turn) % len(self._actors)]
        replies = await asyncio.wrap_future(actor.generate.remote(list(batch)).future())
        return [r if isinstance(r, Reply) else r[0](r[1]) for r in replies]

    async def aclose(self) -> None:
        """Stop the actors."""
        await self._model.aclose()
        if self._ray is not None:
            with contextlib.suppress(ValueError):
                for actor in self._actors:
                    self._ray.kill(actor)
            self._ray = None
            disconnect()


def remote(models: Sequence[Model], specs: Sequence[str], plan: Plan) -> list[Model]:
    """``models`` with those that run on this machine put on the cluster."""
    task = {"name_or_path": plan.task, "labels": plan.labels, "favourable": plan.favourable}
    return [
        Remote(model, spec, task=task, base_url=plan.base_url, jobs=plan.workers)
        if spec.partition(":")[0] in LOCAL
        else model
        for model, spec in zip(models, specs, strict=True)
    ]

"""``audit resume RUN``: finish a run that was cut off."""

from __future__ import annotations

import typer

from auditor.cli import common, consent
from auditor.cli.common import find_run, finish, invoke
from auditor.cli.main import complain
from auditor.cli.options import takes
from auditor.cli.progress import Draw
from auditor.core.plan import Plan

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("resume", Plan)
def resume(
    run: common.RunArgument,
    format: common.Format = "terminal",
    full: common.Full = False,
    fail_on: common.FailOn = None,
    model: consent.Models = None,
    base_url: consent.Address = None,
    yes: consent.Yes = False,
    **limits: object,
) -> int:
    """Finish RUN; what was answered is not asked again. New limits may be given; they are for the whole run."""
    from auditor.agent.folder import SESSION
    from auditor.run.mitigate import TRIAL
    from auditor.run.result import load, settle
    from auditor.run.result import resume as go
    from auditor.store.folder import RunFolder
    from auditor.store.verify import require_intact

    common.check_format(format)
    path = find_run(run, begun=("plan.json", TRIAL, SESSION))
    if (path / SESSION).is_file():
        from auditor.core.errors import ConfigError

        raise ConfigError(
            f"{path} is a session of audit agent.", below=f"Go on with: audit agent {common.quoted(path)} --resume"
        )
    given: consent.Given = {"yes": yes, "given": model or (), "base_url": base_url}
    if (path / TRIAL).is_file():
        from auditor.cli import mitigate

        return mitigate.resume(path, limits, given, format)
    folder = RunFolder.open(path)
    if folder.plan.get("kind") == "tabular":
        from auditor.core.errors import ConfigError

        raise ConfigError(f"{path} is a tabular run.", below=f"Go on with: audit tabular resume {common.quoted(path)}")
    require_intact(path)
    panels = "panels" in folder.plan
    if (path / "run.json").is_file() and folder.record().get("status") == "complete":
        complain(f"Nothing was left to ask: {path} is complete.")
        if panels:
            return 0
        result = load(path) if (path / "report.html").is_file() else settle(folder)
        return finish(result, format=format, fail_on=fail_on, full=full)
    named = consent.Named.of_texts(folder.plan.get("plan") or {})
    again = f"resume {common.quoted(path)}"
    named.consent(path, again=again, **given)
    if panels:
        from auditor.cli import choose
        from auditor.run.choose import resume as ask

        plan, done = ask(path, limits, Draw())
        return choose.finish(plan.task, done, format)
    return finish(go(path, observe=Draw(), limits=limits), format=format, fail_on=fail_on, full=full)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "resume", argv)

"""Models that decide on table rows: ``sklearn:FILE``, ``python:MODULE:FUNCTION``, ``exec:COMMAND``.

Tabular search calls ``predict(X) -> labels`` on many rows at once.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from auditor.core import userfile
from auditor.core.counting import plural
from auditor.core.errors import (
    AuditError,
    BudgetExceeded,
    CallError,
    ConfigError,
    DataFileError,
    MissingDependency,
    PluginError,
    UnknownPlugin,
    UserError,
)
from auditor.core.types import digest
from auditor.models.program import TIMEOUT_S, Program, Promise, digests, split
from auditor.models.python import _source_digest as source_digest
from auditor.models.python import load as load_python
from auditor.models.scalar import scalar

KINDS = ("sklearn", "python", "exec")
LEAST_UNPACKED = 2**28  # bytes that any model file may unpack to
MOST_TIMES = 50  # its size, beyond that; forests of trees unpack to some 15 times theirs
PICKLES = (".joblib", ".pkl", ".pickle")
# Classes of scikit-learn that hold arrays and numbers only; skops asks about them because they are compiled or private.
HARMLESS = (
    "sklearn.tree._tree.",
    "sklearn.ensemble._hist_gradient_boosting.",
    "sklearn._loss.",
    "sklearn.neighbors._kd_tree.",
    "sklearn.neighbors._ball_tree.",
    "sklearn.neural_network._stochastic_optimizers.",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.linear_model._sgd_fast.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableModel:
    """A model of rows.

    Parameters
    ----------
    name : str
        Its spec.
    predict : callable
        Rows of shape (n, d) → labels of shape (n,).
    fingerprint : str
        What identifies it in the record.
    frame : bool
        Whether it wants a data frame with column names instead of an array.
    slow : bool
        Whether each row costs so much that answers are kept and rows are spared.
    close : callable
        Releases what it holds.
    estimator : object, optional
        The scikit-learn estimator, for retraining.
    """

    name: str
    predict: Callable[[Any], Any]
    fingerprint: str
    frame: bool = False
    slow: bool = False
    close: Callable[[], None] = lambda: None
    estimator: object = None


def load_table_model(
    spec: str, columns: Sequence[str], *, trust_pickle: bool = False, max_seconds: float | None = None
) -> TableModel:
    """Open a model of rows.

    Parameters
    ----------
    spec : str
        ``sklearn:FILE``, ``python:MODULE:FUNCTION`` or ``exec:COMMAND``.
    columns : sequence of str
        The input columns in the order of the schema; the model must read as many.
    trust_pickle : bool
        Whether files that run code when they are opened (joblib, pickle) may be opened.
    max_seconds : float, optional
        Of the run: a program is not waited for beyond them.

    Raises
    ------
    UnknownPlugin
        Another kind of spec.
    ConfigError
        The model cannot be opened, or reads another number of columns.
    DataFileError
        The file cannot be read.
    MissingDependency
        A package is not installed.
    """
    kind, _, rest = spec.partition(":")
    if kind not in KINDS or not rest:
        raise UnknownPlugin(
            "table model",
            spec,
            (*KINDS, "http"),
            "Give sklearn:FILE, python:MODULE:FUNCTION, exec:COMMAND or http:FILE.yaml.",
        )
    if kind == "sklearn":
        return _sklearn(spec, Path(rest), columns, trust_pickle)
    if kind == "exec":
        program = RowProgram(rest, columns, max_seconds=max_seconds)
        return TableModel(
            name=spec,
            predict=program.predict,
            fingerprint="exec:" + digest([rest, *digests(split(rest))], size=16),
            slow=True,
            close=program.close,
        )
    function = load_python(rest)
    if not callable(function):
        raise ConfigError(f"model {spec}: {rest.rpartition(':')[2]} is not callable")
    return TableModel(
        name=spec,
        predict=function,
        fingerprint="python:" + digest([rest, source_digest(function)], size=16),
        frame=bool(getattr(function, "frame", False)),
        slow=bool(getattr(function, "slow", False)),
    )


def _sklearn(spec: str, path: Path, columns: Sequence[str], trust_pickle: bool) -> TableModel:
    model, content = open_estimator(path, trust_pickle=trust_pickle)
    if not hasattr(model, "predict"):
        raise ConfigError(f"model {spec}: the file holds a {type(model).__name__}, which has no predict")
    named = getattr(model, "feature_names_in_", None)
    if named is not None:
        wanted = [str(name) for name in named]
        if lacking := [name for name in wanted if name not in columns]:
            raise ConfigError(
                f"model {spec} reads the column {lacking[0]!r} ({plural(len(wanted), 'column')} in all), "
                "which the schema does "
                f"not have. Its columns: {', '.join(columns)}. Edit the schema (a derived column may stand in place of "
                f"its source), or give --data with all columns"
            )
        inner = model.predict

        def predict(rows: Any) -> Any:
            return inner(rows[wanted])

        return TableModel(name=spec, predict=predict, fingerprint=f"sklearn:{content}", frame=True, estimator=model)
    width = getattr(model, "n_features_in_", None)
    if width is not None and int(width) != len(columns):
        raise ConfigError(
            f"model {spec} reads {plural(int(width), 'column')}, but the schema has {len(columns)}: "
            f"{', '.join(columns)}. "
            f"Give --data with the columns that the model was trained on (the target is not one of them)"
        )
    return TableModel(name=spec, predict=model.predict, fingerprint=f"sklearn:{content}", estimator=model)


def open_estimator(path: Path, *, trust_pickle: bool = False) -> tuple[object, str]:
    """A scikit-learn estimator from a file, and the digest of the file.

    ``.skops`` files hold data and names of types only; those outside the libraries skops knows are refused.
    ``.joblib`` and ``.pickle`` files run code when they are opened, and are refused without ``trust_pickle``.
    """
    try:
        content = userfile.sha256(path)[:32]
    except OSError as error:
        raise DataFileError(f"cannot read the model file {path}: {error.strerror or error}") from error
    if path.suffix in PICKLES:
        if not trust_pickle:
            raise ConfigError(
                f"{path} is a pickle, and opening a pickle runs the code inside it. If you trust its origin, "
                f"give --trust-pickle; else save the model with skops.io.dump(model, 'model.skops')"
            )
        return _unpickle(path), content
    try:
        import skops.io as sio  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependency("reading .skops models", "skops", "tabular") from error
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > max(LEAST_UNPACKED, MOST_TIMES * path.stat().st_size):
            raise DataFileError(
                f"{path} would unpack to {unpacked / 2**30:,.1f} GiB, {unpacked // path.stat().st_size:,} times its "
                "size, which no model does; it is not opened"
            )
        asked = [str(name) for name in sio.get_untrusted_types(file=path)]
        known = [name for name in asked if name.startswith(HARMLESS)]
        if unknown := sorted(set(asked) - set(known)):
            raise ConfigError(
                f"{path} holds types that are not known to be harmless: {', '.join(unknown[:5])}. "
                f"Load it in a module of your own and give --model python:MODULE:FUNCTION"
            )
        return sio.load(path, trusted=known), content
    except (BadZipFile, KeyError, ValueError, TypeError, OSError, RecursionError) as error:
        raise DataFileError(
            f"{path} is not a readable .skops file ({type(error).__name__}: {error}). "
            f"Endings: .skops, or .joblib/.pickle with --trust-pickle"
        ) from error


def _unpickle(path: Path) -> object:
    try:
        import joblib  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependency("reading .joblib models", "joblib", "tabular") from error
    try:
        return joblib.load(path)
    except Exception as error:  # a pickle may raise anything
        raise DataFileError(f"cannot open {path}: {type(error).__name__}: {error}") from error


class RowProgram:
    """``exec:COMMAND`` on rows: one program that stays open, JSON lines in and out.

    ::

        → {"id": 0, "row": {"age": 3, "sex": "Female"}}
        ← {"id": 0, "output": "denied"}

    Answers may come in any order; a whole batch is written before the last answer is awaited. See
    `auditor.models.program`; one line that is no answer ends it.

    Parameters
    ----------
    command : str
        The command line.
    columns : sequence of str
        Names of the columns, in the order of the rows.
    timeout_s : float
        Seconds to wait for the next answer.
    max_seconds : float, optional
        Seconds from now on after which no answer is waited for.
    """

    def __init__(
        self, command: str, columns: Sequence[str], *, timeout_s: float = TIMEOUT_S, max_seconds: float | None = None
    ) -> None:
        self._name, self._columns = f"exec:{command}", list(columns)
        self._timeout_s, self._max_seconds = timeout_s, max_seconds
        self._until = math.inf if max_seconds is None else time.monotonic() + max_seconds
        self._stopped: AuditError | None = None  # why it is asked nothing more
        self._program = Program(self._name, split(command), strict=True)

    def predict(self, rows: Any) -> list[str]:
        """Answers of the program, one per row.

        Raises
        ------
        BudgetExceeded
            The time of the run is over, or the program, which answered before, does so no longer.
        UserError
            It never answered.
        PluginError
            It ended, or wrote what is no answer.
        """
        if self._stopped is not None:
            raise self._stopped
        sent = self._program.send(
            {"row": {c: scalar(v) for c, v in zip(self._columns, row, strict=True)}} for row in rows.tolist()
        )
        began = time.monotonic()
        return [self._output(promise, began) for promise in sent.values()]

    def _output(self, promise: Promise, began: float) -> str:
        while not promise.done():
            ends = min(max(began, self._program.heard) + self._timeout_s, self._until)
            with contextlib.suppress(TimeoutError):
                promise.result(timeout=max(0.0, ends - time.monotonic()))
                break
            if time.monotonic() >= min(max(began, self._program.heard) + self._timeout_s, self._until):
                self._give_up()
        entry = promise.result()
        if isinstance(entry, CallError) or "output" not in entry:
            told = str(entry) if isinstance(entry, CallError) else str(entry.get("error", "no output"))[:200]
            raise PluginError(f"model {self._name}: {told}")
        return str(entry["output"])

    def _give_up(self) -> NoReturn:
        self._program.kill()  # nobody reads what it may still write
        told, late = f"model {self._name} gave no answer in {self._timeout_s:g} s", bool(self._program.heard)
        if time.monotonic() >= self._until:
            told, late = f"the limit of {self._max_seconds:g} seconds (--max-seconds) is reached", True
        self._stopped = BudgetExceeded(told) if late else UserError(told)
        raise self._stopped

    def close(self) -> None:
        """End the program."""
        self._program.close()

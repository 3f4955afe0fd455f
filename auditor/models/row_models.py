"""Models that decide on table rows: ``sklearn:FILE``, ``python:MODULE:FUNCTION``, ``exec:COMMAND``.

Tabular search calls ``predict(X) -> labels`` on many rows at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from auditor.core import reading
from auditor.core.errors import (
    BudgetExceeded,
    CallError,
    CallTimeout,
    ConfigError,
    DataFileError,
    MissingDependency,
    PluginError,
    UnknownPlugin,
    UserError,
)
from auditor.core.protocols import Reply
from auditor.core.shown import plural
from auditor.core.types import digest
from auditor.models.adapter import scalar
from auditor.models.exec import TIMEOUT_S, Exec
from auditor.models.python import load as load_python
from auditor.models.python import source_digest

KINDS = ("sklearn", "python", "exec")
LEAST_UNPACKED = 2**28  # bytes that any model file may unpack to
MOST_TIMES = 50  # its size, beyond that; forests of trees unpack to some 15 times theirs
PICKLES = (".joblib", ".pkl", ".pickle")
# Parts of ordinary pipelines that skops asks about, because they are compiled, private or functions. They hold arrays,
# numbers and objects that skops looks at too. A name that ends with a dot means every name of its module.
HARMLESS = (
    "numpy.dtype",
    "numpy.number",
    "sklearn._loss.",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.impute._iterative.IterativeImputer",
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.linear_model._sgd_fast.",
    "sklearn.metrics._dist_metrics.",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neighbors._ball_tree.",
    "sklearn.neighbors._kd_tree.",
    "sklearn.neural_network._stochastic_optimizers.",
    "sklearn.tree._tree.",
    "sklearn.utils._bunch.Bunch",
)
HARMLESS_MODULES = tuple(name for name in HARMLESS if name.endswith("."))


@dataclass(frozen=True, kw_only=True, slots=True)
class TableModel:
    """A model of rows; ``name`` is its spec."""

    name: str
    predict: Callable[[Any], Any]  # rows of shape (n, d) → labels of shape (n,)
    fingerprint: str
    frame: bool = False  # whether it wants a data frame with column names instead of an array
    slow: bool = False  # whether each row costs so much that answers are kept and rows are spared
    close: Callable[[], None] = lambda: None
    estimator: object = None  # of scikit-learn, for retraining


def load_table_model(
    spec: str, columns: Sequence[str], *, trust_pickle: bool = False, max_seconds: float | None = None
) -> TableModel:
    """Open a model of rows that reads ``columns``, in this order.

    ``trust_pickle`` opens files that run code when they are opened. A program is not waited for beyond ``max_seconds``.
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
        program = _Rows(rest, columns, max_seconds)
        fingerprint = program.model.fingerprint
        return TableModel(name=spec, predict=program.predict, fingerprint=fingerprint, slow=True, close=program.close)
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


class _Rows:
    """A program that decides on rows."""

    def __init__(self, command: str, columns: Sequence[str], max_seconds: float | None) -> None:
        self.model = Exec(command, timeout_s=min(TIMEOUT_S, max_seconds or TIMEOUT_S))
        self._columns, self._answered = list(columns), False
        self._runner = asyncio.Runner()

    def predict(self, rows: Any) -> list[str]:
        """Return the answers, one per row."""
        plain = [{c: scalar(v) for c, v in zip(self._columns, row, strict=True)} for row in rows.tolist()]
        answers = []
        for start in range(0, len(plain), self.model.max_batch):
            asked = [{"row": row} for row in plain[start : start + self.model.max_batch]]
            answers += [self._output(reply) for reply in self._runner.run(self.model.ask(asked))]
        return answers

    def _output(self, reply: Reply | CallError) -> str:
        if isinstance(reply, Reply):
            self._answered = True
            return reply.text
        if isinstance(reply, CallTimeout):  # of one that answered before, what was found stays
            raise BudgetExceeded(str(reply)) if self._answered else UserError(str(reply))
        raise PluginError(f"model {self.model.name}: {reply}")

    def close(self) -> None:
        """End the program."""
        try:
            self._runner.run(self.model.aclose())
        finally:
            self._runner.close()


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
                f"which the schema does not have. Its columns: {', '.join(columns)}. Edit the schema (a derived column "
                "may replace its source), or give --data with all columns"
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
    """Return the scikit-learn estimator in a file, and the digest of the file.

    ``.skops`` files hold data and names of types; unknown types are refused. ``.joblib`` and ``.pickle`` files run code
    when they are opened, and are refused without ``trust_pickle``.
    """
    try:
        content = reading.sha256(path)[:32]
    except OSError as error:
        raise DataFileError(f"cannot read the model file {path}: {error.strerror or error}") from error
    if path.suffix in PICKLES:
        if not trust_pickle:
            raise ConfigError(
                f"{path} is a pickle, and opening a pickle runs the code inside it. If you trust its origin, "
                f"give --trust-pickle; else save the model with skops.io.dump(model, 'model.skops')"
            )
        try:
            import joblib  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise MissingDependency("reading .joblib models", "joblib", "tabular") from error
        try:
            return joblib.load(path), content
        except Exception as error:  # a pickle may raise anything
            raise DataFileError(f"cannot open {path}: {type(error).__name__}: {error}") from error
    try:
        import skops.io as sio  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependency("reading .skops models", "skops", "tabular") from error
    try:
        with ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > max(LEAST_UNPACKED, MOST_TIMES * path.stat().st_size):
            raise DataFileError(
                f"{path} would unpack to {unpacked / 2**30:,.1f} GiB, {unpacked // path.stat().st_size:,} times its "
                "size, which no model does; it is not opened"
            )
        asked = [str(name) for name in sio.get_untrusted_types(file=path)]
        known = [name for name in asked if name in HARMLESS or name.startswith(HARMLESS_MODULES)]
        if unknown := sorted(set(asked) - set(known)):
            raise ConfigError(
                f"{path} holds types that are not known to be harmless: {', '.join(unknown[:5])}. "
                f"Load it in a module of your own and give --model python:MODULE:FUNCTION"
            )
        return sio.load(path, trusted=known), content
    except UserError:
        raise
    except Exception as error:  # a file that was made by hand may raise anything
        raise DataFileError(
            f"{path} is not a readable .skops file ({type(error).__name__}: {error}). "
            f"Endings: .skops, or .joblib/.pickle with --trust-pickle"
        ) from error

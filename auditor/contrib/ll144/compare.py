"""Two sets of tables side by side: which rates differ between them.

Each category's rate in the one is laid beside that in the other, with Fisher's exact test of the two and Holm's
adjustment over all categories that were tested. Two tables from one data set share their people, and then the test
says nothing: it assumes that the people of the one are not those of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Data = Mapping[str, Any]
TABLES = ("sex", "race_ethnicity", "intersectional")
SETTINGS = ("mode", "data_kind", "median_population", "partly_known", "median")


def compare(before: Data, after: Data) -> dict[str, Any]:
    """Lay two records of ``audit ll144`` side by side.

    Parameters
    ----------
    before, after : mapping
        Records; see `auditor.contrib.ll144.record`.

    Returns
    -------
    dict
        ``{"before", "after", "kind": "ll144", "settings": [{"name", "before", "after"}], "notes": […], "rows":
        [{"group", "table", "category", "n_before", "x_before", "rate_before", "ratio_before", …_after,
        "p_value", "p_adjusted"}]}``. Rates are in [0, 1]; p values are None where one of the two has nobody.
    """
    from auditor.measure.multiplicity import holm

    first, second = dict(_rows(before)), dict(_rows(after))
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys([*first, *second]):
        a, b = first.get(key), second.get(key)
        rows.append(
            {
                "group": key[0],
                "table": key[1],
                "category": key[2],
                **_side(a, "before"),
                **_side(b, "after"),
                "p_value": _p(a, b),
            }
        )
    for row, adjusted in zip(rows, holm([r["p_value"] for r in rows]), strict=True):
        row["p_adjusted"] = adjusted
    return {
        "kind": "ll144",
        "before": str(before.get("id") or before["data"]["file"]),
        "after": str(after.get("id") or after["data"]["file"]),
        "settings": _settings(before, after),
        "notes": _notes(before, after),
        "rows": rows,
    }


def _rows(record: Data) -> Iterator[tuple[tuple[str, str, str], Data]]:
    block = record["ll144"]
    parts = [("", block["tables"])] if block["tables"] else []
    parts += [(str(g["group"]), g["tables"]) for g in block["groups"]]
    for group, tables in parts:
        for name in TABLES:
            for row in tables[name]:
                if row["n"]:
                    yield (group, name, str(row["category"])), row


def _side(row: Data | None, side: str) -> dict[str, Any]:
    told = row or {}
    return {
        f"n_{side}": told.get("n"),
        f"x_{side}": told.get("x"),
        f"rate_{side}": told.get("rate"),
        f"ratio_{side}": told.get("impact_ratio"),
        f"ratio_text_{side}": told.get("impact_ratio_text"),
    }


def _p(before: Data | None, after: Data | None) -> float | None:
    if not before or not after:
        return None
    from scipy.stats import fisher_exact

    cells = [[row["x"], row["n"] - row["x"]] for row in (before, after)]
    return float(fisher_exact(cells).pvalue)


def _settings(before: Data, after: Data) -> list[dict[str, str]]:
    pairs = [(name.replace("_", " "), before["ll144"][name], after["ll144"][name]) for name in SETTINGS]
    pairs += [(name, before["data"].get(name), after["data"].get(name)) for name in ("file", "source")]
    pairs.append(("SHA-256 of the file", before["data"]["sha256"], after["data"]["sha256"]))
    return [{"name": name, "before": _told(a), "after": _told(b)} for name, a, b in pairs if a != b]


def _told(value: object) -> str:
    return "not given" if value is None else str(value)


def _notes(before: Data, after: Data) -> list[str]:
    notes = []
    if before["kind"] != after["kind"] or before["ll144"]["mode"] != after["ll144"]["mode"]:
        notes.append("The two measure different outcomes; their rates are not rates of the same thing.")
    if before["data"]["sha256"] == after["data"]["sha256"]:
        notes.append(
            "Both were computed from the same file: the people are the same, and p values say nothing."
        )
    return notes

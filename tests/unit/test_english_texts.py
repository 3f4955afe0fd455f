"""Texts that are not in English are counted and told: the words and the checks of this tool are English."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import audit, tasks
from auditor.cli.main import run
from auditor.core.errors import UserError
from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.report import planned, run_checks
from auditor.text.english import looks_english

ENGLISH = """great movie
loved it
Amazing actress.
worst film ever lol
omg she is sooo good
my mom cried, 10/10 would watch again
u cant be serious bro
Black women deserve better
old white dude rants about taxes
She's a doctor
ok
The señora sold piñatas in São Paulo.
He shouted "Ich liebe dich" at the man.
Dr. van der Berg met la Señora de la Cruz at the café.
Female, 34, married, two kids, nurse, Catholic
café 👍👍👍
gay couple next door, super nice people
Beautiful acting, terrible script
😍😍
La La Land
Los Angeles cops
con man steals son's hat
12345"""
OTHER = """Die Ärztin ist sehr nett und hat mir geholfen.
Der Mann war nicht freundlich.
Meine Schwester ist Lehrerin
Das Essen im Restaurant war kalt und die Kellnerin unhöflich.
La femme est très gentille avec les enfants.
Je ne suis pas content de ce film.
C'est un homme sympathique qui travaille dans une école.
La mujer es muy amable con los niños.
El hombre no está contento con el servicio.
Mi hermana es una doctora excelente
यह फिल्म बहुत अच्छी है।
वह एक अच्छी डॉक्टर है
yeh film bahut acchi hai aur ladki bhi pyari
这个医生很好。
她是一位老师
この先生はとても親切です。
Она очень хороший врач.
هذه الطبيبة لطيفة جدا
Kobieta pracuje jako lekarka szpitalu dziecięcym bardzo długo
Uma mulher não pode entrar com os filhos.
La donna è molto gentile con gli studenti."""


@pytest.mark.parametrize("text", ENGLISH.splitlines())
def test_english_texts_are_no_reason_to_warn(text: str) -> None:
    assert looks_english(text)


@pytest.mark.parametrize("text", OTHER.splitlines())
def test_texts_in_other_languages_are_seen(text: str) -> None:
    assert not looks_english(text)


def test_hardly_an_embedded_text_is_taken_for_another_language() -> None:
    texts = [seed.text for name in ("sentiment", "hiring", "moderation") for seed in tasks.load(name).seeds()]
    assert len(texts) > 500
    assert [text for text in texts if not looks_english(text)] == []


GERMAN = ["Die man ist nett und sehr klug.", "Das ist eine woman, und sie ist alt."]
MIXED = ["My mother is a doctor.", "His sister is kind.", *GERMAN]


def test_the_count_stands_in_the_record_and_in_every_report() -> None:
    result = audit("sentiment", model="vader", data=MIXED, order=1)
    assert result.record["provenance"]["seeds"]["not_english"] == 2
    assert result.complete
    for form in ("terminal", "html", "markdown"):
        text = " ".join(RENDERERS.create(form).render(result.run, result.evidence).split())
        assert "2 of 4 texts do not look like English" in text, form
        if form != "terminal":  # whose first screen is short
            assert "4 texts used, 2 that do not look like English" in text, form


def test_a_dry_run_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text("\n".join(MIXED), encoding="utf-8")
    assert run(["--task", "sentiment", "--model", "vader", "--data", "t.txt", "--dry-run"]) == 0
    assert "Not English, it seems    2 texts" in capsys.readouterr().out


def test_english_texts_are_told_as_before() -> None:
    result = audit("sentiment", model="vader", data=MIXED[:2], order=1)
    assert "not_english" not in result.record["provenance"]["seeds"]
    assert not run_checks.banners(read(result.record))


def test_few_such_texts_are_counted_without_a_warning() -> None:
    seeds = {"n": 1000, "not_english": 3}
    record = {"provenance": {"seeds": seeds}, "counts": {"seeds": 1000}}
    assert run_checks.banners(read(record)) == ()
    assert "3 that do not look like English" in dict(planned.asked(read(record)))["Texts"]


def test_where_nothing_could_be_changed_the_language_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3 of them do not look like English"):
        audit("sentiment", model="vader", data=["Der Film ist sehr schön.", "Das Essen ist nicht gut.", "这个很好。"])

"""Languages of texts and tasks: which it is, what is changed in it, and what the files of languages hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Capture, said

from auditor import audit, tasks
from auditor.core.errors import DataFileError, UnknownPlugin, UserError
from auditor.core.protocols import RENDERERS
from auditor.core.record import read
from auditor.report import run_checks
from auditor.run.choose import rankings, task_of
from auditor.text import languages
from auditor.text.english import looks_english

ENGLISH = """loved it
omg she is sooo good
my mom cried, 10/10 would watch again
u cant be serious bro
ok
The señora sold piñatas in São Paulo.
He shouted "Ich liebe dich" at the man.
Dr. van der Berg met la Señora de la Cruz at the café.
Female, 34, married, two kids, nurse, Catholic
café 👍👍👍
La La Land
12345"""
OTHER = """Die Ärztin ist sehr nett und hat mir geholfen.
Meine Schwester ist Lehrerin
Je ne suis pas content de ce film.
El hombre no está contento con el servicio.
Mi hermana es una doctora excelente
यह फिल्म बहुत अच्छी है।
yeh film bahut acchi hai aur ladki bhi pyari
这个医生很好。
この先生はとても親切です。
Она очень хороший врач.
هذه الطبيبة لطيفة جدا
Kobieta pracuje jako lekarka szpitalu dziecięcym bardzo długo
Uma mulher não pode entrar com os filhos.
La donna è molto gentile con gli studenti."""


def test_texts_in_other_languages_are_seen_and_english_ones_are_no_reason_to_warn() -> None:
    assert [text for text in OTHER.splitlines() if looks_english(text)] == []
    texts = [seed.text for name in ("sentiment", "hiring", "moderation") for seed in tasks.load(name).seeds()]
    assert len(texts) > 500
    assert [text for text in [*ENGLISH.splitlines(), *texts] if not looks_english(text)] == []


MIXED = ["My mother is a doctor.", "His sister is kind."]
MIXED += ["Die man ist nett und sehr klug.", "Das ist eine woman, und sie ist alt."]


def test_words_of_other_languages_stay_as_they_are_and_reports_name_the_languages() -> None:
    result = audit("sentiment", model="vader", data=MIXED, order=1)
    assert result.record["provenance"]["seeds"]["languages"] == {"de": 2, "en": 2}
    assert result.record["counts"]["cases"] == 2
    assert result.record["counts"]["passed_over"]["the text is not in English"] == 2
    assert not [b for b in run_checks.banners(read(result.record)) if "relied on" in b]
    assert "4 texts used (2 German, 2 English)" in dict(run_checks.asked(read(result.record)))["Texts"]
    alone = audit("sentiment", model="vader", data=MIXED[:2], order=1)
    assert "languages" not in alone.record["provenance"]["seeds"]


def test_figures_stay_with_labels_that_run_from_right_to_left() -> None:
    def model(text: str) -> str:
        return "دعوة" if "خبرة" in text else "رفض"

    model.deterministic = True  # type: ignore[attr-defined]
    result = audit("hiring:ar", model=model, cache=False, out=None)
    text = RENDERERS.create("terminal").render(result.run, result.evidence)
    assert re.search(r"answers: \w+ in \d+ %, \w+ in \d+ %", " ".join(text.split()))


def test_pairs_of_the_user_change_any_language_and_a_warning_says_so(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("man;woman\nwoman;man\n", encoding="utf-8")
    result = audit("sentiment", model="vader", data=MIXED, order=1, dictionaries=f"gender={tmp_path / 'pairs.csv'}")
    assert result.record["counts"]["cases"] == 2
    for form in ("html", "markdown"):
        text = " ".join(RENDERERS.create(form).render(result.run, result.evidence).split())
        assert "2 of 4 texts do not look like English" in text, form


def test_a_dry_run_tells_the_languages_and_carriers(capsys: Capture) -> None:
    code, told = said(capsys, "--task hiring:de --model planted --dry-run")
    assert (code, "Languages of the texts 6 German" in told, "Texts about origin 6 by name" in told) == (0, True, True)


def test_where_nothing_could_be_changed_the_language_is_named() -> None:
    with pytest.raises(UserError, match=r"2 of them do not look like English"):
        audit("sentiment", model="vader", data=["Das Essen ist nicht gut.", "这个很好。"])


NOTES = [(code, name) for code in languages.available() for name in languages.load(code).tasks]


@pytest.mark.parametrize(("code", "name"), NOTES)
def test_each_language_has_notes_prompts_and_names_for_each_task(code: str, name: str) -> None:
    task, language = tasks.load(f"{name}:{code}"), languages.load(code)
    seeds = task.seeds()
    assert len(seeds) >= 6
    assert len(task.controls) >= 3
    for seed in seeds:  # who they are about is for the line to say
        assert languages.language_of(seed.text, code) == code
        assert not language.genders(seed.text), seed.text
        assert not language.holds_name(seed.text), seed.text
    assert len(language.names.groups) >= 2
    for pool in language.names.groups.values():
        assert min(len(set(pool.female)), len(set(pool.male))) >= 12
        assert not set(pool.female) & set(pool.male)
        assert len(set(pool.last)) >= 8
    for label, english in zip(task.labels, tasks.load(name).labels, strict=True):
        assert task.read(f"{label}.", "chat").value == task.read(english, "chat").value == label
        assert task.read(f"nicht {label}", "chat").status == "unparsed"  # what negates it is known in English alone


@pytest.mark.parametrize("code", [languages.ENGLISH, *languages.available()])
def test_candidates_are_compared_in_the_language_of_the_task(code: str) -> None:
    english, suffix = languages.choose_in_english(), "" if code == "en" else f":{code}"
    own = languages.load(code).prompt.choose if suffix else english
    assert suffix == "" or own.question != english.question
    for name, wish in (("resume", own.good), ("rating", own.number)):
        wish = wish.replace("{good}", tasks.load(f"{name}{suffix}").favourable or "")
        task = task_of(f"{name}{suffix}", 2)
        assert task.question == own.question.replace("{wish}", wish)
        assert task.formats["choice"].instruction == own.two
    for label in ("first", "second", "tie"):
        answers = {*getattr(own, label), *getattr(english, label)}
        assert {str(task.reader.read(answer).value) for answer in answers} == {label}
    assert task_of(f"hiring{suffix}", 4).formats["ranking-2"].instruction == own.rank
    assert rankings("٢, ٣, ١")[0] == "2 3 1"  # digits of any script


def test_a_language_file_of_the_user_needs_no_code(tmp_path: Path) -> None:
    own = tmp_path / "sv.yaml"
    language = languages.load("de")
    assert language.genders("Sie ist seit Jahren Buchhalterin.") == {"female"}  # a gender that a text states is kept
    assert language.genders("Er und sie arbeiten im Lager.") == {"female", "male"}
    text = language.path.read_text(encoding="utf-8").replace("name: German", "name: Swedish")
    own.write_text(text, encoding="utf-8")
    assert tasks.load(f"hiring:{own}").source == "the task hiring in Swedish"
    text = own.read_text(encoding="utf-8").replace("[einladen, ablehnen]", "[einladen, warten, ablehnen]")
    for wrong, told in (
        (text, r"tasks\.hiring\.labels needs 2 words, for invite / reject"),
        ("name: Swedish", "missing required field `checked`"),
    ):
        own.write_text(wrong, encoding="utf-8")
        with pytest.raises(DataFileError, match=told):
            tasks.load(f"hiring:{own}")
    with pytest.raises(UnknownPlugin, match="unknown language"):
        tasks.load("hiring:xx")

"""Train the embedded English parser (tagger + dependency parser) on UD English-EWT.

The pipeline is small (tok2vec, tagger with Penn tags, parser with UD relations) and runs on one CPU
core. Two augmentations are applied to the training trees while they stream by, because the parser
is used to compare a sentence with a copy of it in which a person word was swapped:

* **swap**: a person noun, pronoun or demonym is replaced by another one of the same Penn tag, so that
  the tree cannot depend on which group a sentence names; sometimes an adjective is put before the noun;
* **lower**: a quarter of the sentences is lower-cased.

Usage::

    python tools/train_parser.py --treebank DIR --out auditor/embedded/parser [--steps 6500]

``DIR`` holds ``en_ewt-ud-{train,dev,test}.conllu[.gz]`` (CC BY-SA 4.0).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example

# Person words by Penn tag. Single tokens only: a swap keeps the tree.
NOUNS = {
    "NN": """man woman person guy girl boy lady gentleman mother father husband wife daughter son sister
        brother aunt uncle nephew niece grandmother grandfather mom dad girlfriend boyfriend partner
        spouse parent child kid teenager adult friend neighbor teacher nurse doctor lawyer actor actress
        waiter waitress host hostess king queen prince princess student worker manager clerk chef driver
        bride groom widow widower sibling mum mama papa grandma grandpa fella dude chick bloke lass lad
        businessman businesswoman policeman policewoman chairman chairwoman salesman saleswoman
        immigrant refugee individual human citizen veteran transgender nonbinary lesbian gay feminist
        male female""",
    "NNS": """men women people persons guys girls boys ladies gentlemen mothers fathers husbands wives
        daughters sons sisters brothers aunts uncles nephews nieces grandmothers grandfathers moms dads
        girlfriends boyfriends partners spouses parents children kids teenagers adults friends neighbors
        teachers nurses doctors lawyers actors actresses waiters waitresses kings queens princes
        princesses students workers managers clerks chefs drivers widows widowers siblings immigrants
        refugees individuals humans citizens veterans folks lads lasses males females businessmen
        businesswomen policemen policewomen lesbians""",
}
PRONOUNS = {
    ("PRP", "subject"): ["he", "she", "they"],
    ("PRP", "object"): ["him", "her", "them"],
    ("PRP$", ""): ["his", "her", "their"],
    ("PRP", "reflexive"): ["himself", "herself", "themselves", "themself"],
}
DEMONYMS = {
    "JJ": """American British Chinese Italian Russian Canadian Mexican Indian Japanese Korean Vietnamese
        Filipino Pakistani Bangladeshi Iranian Iraqi Syrian Turkish Egyptian Nigerian Kenyan Ethiopian
        Ghanaian Somali French German Spanish Portuguese Polish Ukrainian Romanian Greek Swedish
        Norwegian Danish Dutch Irish Scottish Welsh English Brazilian Colombian Cuban Jamaican Haitian
        Australian Israeli Palestinian Saudi Lebanese Moroccan Algerian Afghan Indonesian Malaysian Thai
        Swiss Austrian Belgian Hungarian Czech Argentine Peruvian Chilean Venezuelan African Asian
        European Arab Hispanic Latino Latina Caucasian Jewish Muslim Christian Hindu Buddhist Sikh
        Catholic Protestant black white Black White Native Indigenous multiracial biracial""",
    "NNPS": """Americans Britons Italians Russians Canadians Mexicans Indians Koreans Filipinos Pakistanis
        Iranians Iraqis Syrians Turks Egyptians Nigerians Kenyans Ethiopians Somalis Germans Spaniards
        Poles Ukrainians Romanians Greeks Swedes Norwegians Danes Scots Brazilians Colombians Cubans
        Jamaicans Haitians Australians Israelis Palestinians Moroccans Afghans Indonesians Thais
        Austrians Belgians Hungarians Czechs Africans Asians Europeans Arabs Hispanics Latinos Latinas
        Jews Muslims Christians Hindus Buddhists Sikhs Catholics Whites Blacks""",
    "NNP": """American Briton Italian Russian Canadian Mexican Indian Korean Filipino Pakistani Iranian Iraqi
        Syrian Turk Egyptian Nigerian Kenyan Ethiopian Somali German Spaniard Pole Ukrainian Romanian
        Greek Swede Norwegian Dane Scot Brazilian Colombian Cuban Jamaican Haitian Australian Israeli
        Palestinian Moroccan Afghan Indonesian Austrian Belgian Hungarian Czech African Asian European
        Arab Latino Latina Jew Muslim Christian Hindu Buddhist Sikh Catholic""",
}
_MODIFIERS = """disabled blind deaf trans transgender cisgender gay lesbian straight queer bisexual old young
        elderly middle-aged poor rich wealthy homeless fat thin short tall black white Asian African
        Latino Hispanic Muslim Jewish Christian pregnant autistic Mexican Nigerian Chinese British
        Polish Indian"""

MODIFIERS = _MODIFIERS.split()
NOUN_SETS = {tag: words.split() for tag, words in NOUNS.items()}
DEMONYM_SETS = {tag: words.split() for tag, words in DEMONYMS.items()}

CONFIG = """
[paths]
train = null
dev = null
[system]
seed = 0
gpu_allocator = null
[nlp]
lang = "en"
pipeline = ["tok2vec","tagger","parser"]
batch_size = 1000
[components]
[components.tok2vec]
factory = "tok2vec"
[components.tok2vec.model]
@architectures = "spacy.Tok2Vec.v2"
[components.tok2vec.model.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = 96
attrs = ["NORM", "PREFIX", "SUFFIX", "SHAPE"]
rows = [5000, 1000, 2500, 2500]
include_static_vectors = false
[components.tok2vec.model.encode]
@architectures = "spacy.MaxoutWindowEncoder.v2"
width = 96
depth = 4
window_size = 1
maxout_pieces = 3
[components.tagger]
factory = "tagger"
label_smoothing = 0.05
[components.tagger.model]
@architectures = "spacy.Tagger.v2"
nO = null
normalize = false
[components.tagger.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 96
upstream = "*"
[components.parser]
factory = "parser"
moves = null
update_with_oracle_cut_size = 100
learn_tokens = false
min_action_freq = 30
[components.parser.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "parser"
extra_state_tokens = false
hidden_width = 128
maxout_pieces = 3
use_upper = true
nO = null
[components.parser.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = 96
upstream = "*"
[corpora]
[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
gold_preproc = false
max_length = 0
[corpora.train.augmenter]
@augmenters = "auditor.person_swap.v1"
swap = 0.4
insert = 0.06
lower = 0.25
seed = 0
[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}
gold_preproc = true
max_length = 0
[training]
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"
seed = 0
gpu_allocator = null
dropout = 0.1
accumulate_gradient = 1
patience = 4000
max_epochs = 0
max_steps = 6500
eval_frequency = 500
[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.001
use_averages = true
[training.batcher]
@batchers = "spacy.batch_by_words.v1"
discard_oversize = false
tolerance = 0.2
[training.batcher.size]
@schedules = "compounding.v1"
start = 100
stop = 1000
compound = 1.001
[training.logger]
@loggers = "spacy.ConsoleLogger.v1"
progress_bar = false
[training.score_weights]
tag_acc = 0.4
dep_uas = 0.1
dep_las = 0.5
sents_f = 0.0
[initialize]
"""


def read_conllu(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one sentence at a time: words, spaces, tags, heads (absolute), deps.

    The words of a multi-word token ("don't") are written without a space between them where they
    spell it out; where they do not ("dont" as do + nt is fine, contractions with other letters are not),
    the written form is spread over the words as far as it goes.
    """
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    sentence: list[list[str]] = []
    joined: dict[int, tuple[int, str, bool]] = {}
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if not line:
                if sentence:
                    yield _sentence(sentence, joined)
                sentence, joined = [], {}
            elif not line.startswith("#"):
                fields = line.split("\t")
                if "-" in fields[0]:
                    first, last = (int(part) for part in fields[0].split("-"))
                    joined[first] = (last, fields[1], "SpaceAfter=No" not in fields[9])
                elif "." not in fields[0]:
                    sentence.append(fields)
    if sentence:
        yield _sentence(sentence, joined)


def _sentence(rows: list[list[str]], joined: dict[int, tuple[int, str, bool]]) -> dict[str, Any]:
    words = [row[1] for row in rows]
    spaces = ["SpaceAfter=No" not in row[9] for row in rows]
    for first, (last, surface, space) in joined.items():
        span = slice(first - 1, last)
        if "".join(words[span]) != surface and len(surface) >= last - first + 1:
            cut, pieces = 0, []
            for word in words[span][:-1]:
                size = min(len(word), len(surface) - cut - 1)
                pieces.append(surface[cut : cut + size])
                cut += size
            words[span] = [*pieces, surface[cut:]]
        spaces[span] = [False] * (last - first) + [space]
    heads = [int(row[6]) - 1 if row[6] != "0" else i for i, row in enumerate(rows)]
    return {
        "words": words,
        "spaces": spaces,
        "tags": [row[4] for row in rows],
        "heads": heads,
        "deps": ["ROOT" if row[7] == "root" else row[7] for row in rows],
    }


def to_doc(nlp: Language, sentence: dict[str, Any]) -> Doc:
    """A gold `Doc` for one sentence."""
    return Doc(nlp.vocab, sent_starts=[True] + [False] * (len(sentence["words"]) - 1), **sentence)


def recase(model: str, word: str) -> str:
    """Give ``word`` the case of ``model`` (UPPER, Title, else as listed)."""
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def swap_word(word: str, tag: str, dep: str, rng: random.Random) -> str | None:
    """Another person word of the same tag and slot, or None where ``word`` is none."""
    low = word.lower()
    for (pronoun_tag, _), words in PRONOUNS.items():
        if tag == pronoun_tag and low in words:
            if low == "her" and pronoun_tag == "PRP":
                return recase(word, rng.choice(["him", "them"]))
            return recase(word, rng.choice(words))
    if low in NOUN_SETS.get(tag, ()):
        return recase(word, rng.choice(NOUN_SETS[tag]))
    listed = DEMONYM_SETS.get("JJ" if dep == "amod" and tag == "NNP" else tag, ())
    if word in listed or word.title() in listed:
        other = rng.choice(listed)
        return other.lower() if word.islower() else recase(word, other)
    return None


@spacy.registry.augmenters("auditor.person_swap.v1")  # type: ignore[untyped-decorator]
def person_swap(
    swap: float, insert: float, lower: float, seed: int
) -> Callable[[Language, Example], Iterator[Example]]:
    """Augmenter: swap person words, put an adjective before some, lower-case some sentences."""
    rng = random.Random(seed)

    def augment(nlp: Language, example: Example) -> Iterator[Example]:
        gold = example.reference
        words = [t.text for t in gold]
        tags = [t.tag_ for t in gold]
        heads = [t.head.i for t in gold]
        deps = [t.dep_ for t in gold]
        spaces = [bool(t.whitespace_) for t in gold]
        if rng.random() < 2 * swap:
            for i, word in enumerate(words):
                if rng.random() < swap * 1.5:
                    other = swap_word(word, tags[i], deps[i], rng)
                    if other is not None:
                        words[i] = other
        for i in reversed(range(len(words))):
            if words[i].lower() in NOUN_SETS.get(tags[i], ()) and rng.random() < insert:
                words.insert(i, rng.choice(MODIFIERS))
                tags.insert(i, "JJ")
                spaces.insert(i, True)
                heads = [h + 1 if h >= i else h for h in heads]
                heads.insert(i, i + 1)
                deps.insert(i, "amod")
        if rng.random() < lower:
            words = [w.lower() for w in words]
        reference = to_doc(nlp, {"words": words, "spaces": spaces, "tags": tags, "heads": heads, "deps": deps})
        yield Example(nlp.make_doc(reference.text), reference)

    return augment


def scores(nlp: Language, path: Path, *, lower: bool = False) -> dict[str, float]:
    """Tag accuracy, UAS and LAS with gold tokens: without punctuation (spaCy) and with it (UD)."""
    examples, hit_u, hit_l, total = [], 0, 0, 0
    for sentence in read_conllu(path):
        if lower:
            sentence = sentence | {"words": [w.lower() for w in sentence["words"]]}
        gold = to_doc(nlp, sentence)
        bare = Doc(
            nlp.vocab,
            words=sentence["words"],
            spaces=sentence["spaces"],
            sent_starts=[True] + [False] * (len(gold) - 1),
        )
        examples.append(Example(bare, gold))
    for example in examples:
        for _, pipe in nlp.pipeline:
            example.predicted = pipe(example.predicted)
        for a, b in zip(example.predicted, example.reference, strict=True):
            total += 1
            hit_u += a.head.i == b.head.i
            hit_l += a.head.i == b.head.i and a.dep_ == b.dep_
    found = nlp.evaluate(examples)
    return {
        "sentences": len(examples),
        "words": total,
        "tag_acc": round(100 * found["tag_acc"], 2),
        "las_no_punct": round(100 * found["dep_las"], 2),
        "uas_no_punct": round(100 * found["dep_uas"], 2),
        "las": round(100 * hit_l / total, 2),
        "uas": round(100 * hit_u / total, 2),
    }


def find(treebank: Path, part: str) -> Path:
    """The file of one part of the treebank, gzipped or not."""
    for name in (f"en_ewt-ud-{part}.conllu.gz", f"en_ewt-ud-{part}.conllu"):
        if (treebank / name).exists():
            return treebank / name
    raise SystemExit(f"{treebank} holds no en_ewt-ud-{part}.conllu(.gz)")


def main() -> None:
    """Train, evaluate, and write the pipeline with its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--treebank", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6500)
    parser.add_argument("--evaluate-only", action="store_true", help="print the figures of --out")
    args = parser.parse_args()
    test = find(args.treebank, "test")
    if args.evaluate_only:
        nlp = spacy.load(args.out)
    else:
        from spacy.training.initialize import init_nlp
        from spacy.training.loop import train

        with tempfile.TemporaryDirectory() as folder:
            blank = spacy.blank("en")
            for part in ("train", "dev"):
                docs = [to_doc(blank, s) for s in read_conllu(find(args.treebank, part))]
                DocBin(docs=docs, store_user_data=False).to_disk(Path(folder) / f"{part}.spacy")
            config = spacy.util.load_config_from_str(CONFIG)
            config["paths"] = {p: str(Path(folder) / f"{p}.spacy") for p in ("train", "dev")}
            config["training"]["max_steps"] = args.steps
            nlp = init_nlp(config)
            (Path(folder) / "out").mkdir()
            train(nlp, Path(folder) / "out", stdout=sys.stdout, stderr=sys.stderr)
            nlp = spacy.load(Path(folder) / "out" / "model-best")
            nlp.config["paths"] = {"train": None, "dev": None, "vectors": None, "init_tok2vec": None}
            shutil.rmtree(args.out, ignore_errors=True)
            nlp.to_disk(args.out)
    figures: dict[str, Any] = {"test": scores(nlp, test), "test_lower": scores(nlp, test, lower=True)}
    figures["bytes"] = sum(p.stat().st_size for p in args.out.rglob("*") if p.is_file())
    print(json.dumps(figures, indent=2))
    if not args.evaluate_only:
        (args.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

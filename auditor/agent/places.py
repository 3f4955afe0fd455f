"""Names of countries, and the group of the dictionary ``nationality`` that each stands for in a question."""

from __future__ import annotations

from collections.abc import Mapping

COUNTRIES: Mapping[str, str] = {
    "afghanistan": "afghan", "america": "american", "united states": "american", "usa": "american",
    "argentina": "argentine", "australia": "australian", "austria": "austrian", "bangladesh": "bangladeshi",
    "belgium": "belgian", "brazil": "brazilian", "britain": "british", "united kingdom": "british",
    "canada": "canadian", "chile": "chilean", "china": "chinese", "colombia": "colombian", "cuba": "cuban",
    "czechia": "czech", "czech republic": "czech", "denmark": "danish", "netherlands": "dutch", "egypt": "egyptian",
    "england": "english", "ethiopia": "ethiopian", "philippines": "filipino", "finland": "finnish",
    "france": "french", "germany": "german", "ghana": "ghanaian", "greece": "greek", "haiti": "haitian",
    "hungary": "hungarian", "india": "indian", "indonesia": "indonesian", "iran": "iranian", "iraq": "iraqi",
    "ireland": "irish", "israel": "israeli", "italy": "italian", "jamaica": "jamaican", "japan": "japanese",
    "kenya": "kenyan", "lebanon": "lebanese", "mexico": "mexican", "morocco": "moroccan", "nigeria": "nigerian",
    "norway": "norwegian", "pakistan": "pakistani", "palestine": "palestinian", "peru": "peruvian", "poland": "polish",
    "portugal": "portuguese", "puerto rico": "puerto_rican",
    "romania": "romanian", "russia": "russian", "scotland": "scottish", "somalia": "somali",
    "south africa": "south_african", "south korea": "south_korean", "spain": "spanish", "sweden": "swedish",
    "switzerland": "swiss", "syria": "syrian", "thailand": "thai", "turkey": "turkish", "ukraine": "ukrainian",
    "venezuela": "venezuelan", "vietnam": "vietnamese", "wales": "welsh",
}  # fmt: skip

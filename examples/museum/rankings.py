"""Write one row for each person of each ranking, and whether that person came first.

Usage: python rankings.py FILE.jsonl.gz > rows.csv
"""

import csv
import gzip
import json
import sys

write = csv.writer(sys.stdout).writerow
write(["ranking", "job", "group", "first"])
with gzip.open(sys.argv[1], "rt", encoding="utf-8") as file:
    for line in map(json.loads, file):
        said = line["response"].casefold()
        at = [said.find(name.casefold()) for name in line["default_order"]]
        first = min((place for place in at if place >= 0), default=None)
        for group, place in zip(line["demo_order"], at, strict=True):
            write([line["run"], line["job"], group, "yes" if place == first else "no"])

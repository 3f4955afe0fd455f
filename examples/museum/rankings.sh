audit ll144 --rankings "$DATA/hiring_recorded/gpt-3.5-turbo-0613_rankings.jsonl.gz" --leave-out /oversampled/

"""Run folders: the plan, the journals of cases and answers, and what was made of them."""

"""Published benchmarks of stereotypes: the user's files in, the benchmark's own score and ours out."""

NAMES = ("bbq", "crows-pairs", "stereoset", "winobias")

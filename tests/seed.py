"""The seed of random tests: `DUETIME_SEED=17` repeats a run."""

import os
import random
import sys


def given_seed() -> int | None:
    text = os.environ.get("DUETIME_SEED")
    return None if text is None else int(text)


def chosen_seed() -> int:
    """The given seed, else one at random. It is printed; pytest shows that of a failed test."""
    seed = given_seed()
    if seed is None:
        seed = random.randrange(2**32)
    sys.stdout.write(f"DUETIME_SEED={seed}\n")
    return seed

"""Some seconds of long_runs.py.

LIBRA_LONG_RUN_SECONDS=600 makes it long; the seed is printed.
"""

import os
import random

import pytest

import faults
import long_runs

SECONDS = float(os.environ.get("LIBRA_LONG_RUN_SECONDS", "8"))


@pytest.mark.parametrize("place", long_runs.RANKS)
def test_results_stay_right_and_nothing_grows(place, capsys):
    if reason := faults.missing(place):
        pytest.skip(reason)
    figures = long_runs.run(place, SECONDS, random.SystemRandom().randrange(1 << 30))
    with capsys.disabled():
        print(f"\n{figures}")


def test_what_grows_is_seen():
    with pytest.raises(AssertionError, match="files"):
        long_runs.check_flat([{"files": 9 + n, "threads": 4} for n in range(6)])
    assert "files 9 to 9" in long_runs.check_flat([{"files": 9, "threads": 4}] * 6)

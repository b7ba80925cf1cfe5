import pytest

import libra
from worlds import World


@pytest.fixture(scope="module")
def worlds():
    """worlds(n): n processes of one torch.distributed job, kept for the tests of a file."""
    made = {}

    def world(size):
        if size not in made:
            made[size] = World(size)
        return made[size]

    yield world
    for each in made.values():
        each.close()


@pytest.fixture(name="pool")
def one_rank_pool():
    pool = libra.Pool()
    yield pool
    pool.close()

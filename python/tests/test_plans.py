"""Plans, pools and errors as Python sees them; nothing of torch."""

import pathlib
import re

import pytest

import libra

def test_the_stubs_name_what_can_be_imported():
    stub = pathlib.Path(libra.__file__).with_name("__init__.pyi").read_text(encoding="utf-8")
    names = [*libra.__all__, "__version__", "kernels"]
    assert sorted(re.findall(r" as (\w+)$", stub, re.M)) == sorted(names)
    for name in names:
        assert getattr(libra, name).__doc__, name


TINY = dict(q_heads=8, kv_heads=4, head_dim=16, block_tokens=16, chunks=2)


def options(**changes):
    return libra.PlanOptions(**{**TINY, **changes})


def test_options_have_the_defaults_of_the_core():
    made = libra.PlanOptions(q_heads=32, kv_heads=8, head_dim=128)
    assert (made.value_dim, made.dtype, made.home, made.placer) == (
        128, "bf16", "contiguous", "balanced")
    assert (made.head_shards, made.chunks, made.fetch, made.backward) == (2, 2, "prefix", "keep")
    assert made.tau == pytest.approx(0.03)
    assert made == eval(repr(made), {"PlanOptions": libra.PlanOptions})


def test_the_signature_tells_the_defaults():
    made = libra.PlanOptions(q_heads=32, kv_heads=8, head_dim=128)
    signature = libra.PlanOptions.__init__.__nb_signature__[0][0].removesuffix(") -> None")
    told = dict(parameter.split(" = ") for parameter in re.split(r", (?=\w+: )", signature)
                if " = " in parameter)
    told = {name.split(":")[0]: default for name, default in told.items()}
    assert len(told) == 20
    for name, default in told.items():
        if name not in ("value_dim", "fetch"):  # they follow other options
            assert getattr(made, name) == pytest.approx(eval(default)), name


@pytest.mark.parametrize("wrong, words", [
    (dict(chunk=2), "takes no 'chunk': do you mean chunks\\?"),
    (dict(zzz=2), "takes no 'zzz': q_heads, kv_heads, .*search_us are there"),
    (dict(q_heads="32"), "q_heads='32', a str: it must be an int up to 2147483647"),
    (dict(q_heads=2**31), "q_heads=2147483648, an int: it must be an int up to 2147483647"),
    (dict(head_dim=1.5), "head_dim=1.5, a float: it must be an int"),
    (dict(fetch=None, return_lse=None), "return_lse=None: it must be True or False"),
    (dict(explicit_runs=[[0, 8]]), "explicit_runs=.*: it must be .replica..token part. -> "),
])
def test_a_keyword_that_cannot_be_is_named(wrong, words):
    with pytest.raises(libra.ConfigError, match=words):
        options(**wrong)
    with pytest.raises(libra.ConfigError, match="PlanOptions needs kv_heads, which is not there"):
        libra.PlanOptions(q_heads=4)
    with pytest.raises(libra.ConfigError, match="nothing by position, not 3: give the others by"):
        libra.PlanOptions(32, 8, 128)


SEQUENCE = libra.PackedSequence(8, [8])


@pytest.mark.parametrize("call, words", [
    (lambda: libra.PackedSequence("8", [8]), "PackedSequence cannot take tokens='8', a str: it must"
     " be an int"),
    (lambda: libra.PackedSequence(8, 8), "sample_tokens=8, an int: it must be a sequence of ints"),
    (lambda: libra.PackedSequence(8, [4.0]), "sample_tokens=[4.0], a list: it must be a sequence"),
    (lambda: libra.PackedSequence(8), "needs sample_tokens, which is not there: see help(libra"),
    (lambda: libra.PackedSequence(8, [8], 1), "takes 2 by position, not 3: give the others by"),
    (lambda: libra.PackedSequence(8, tokens=8), "PackedSequence is given tokens twice"),
    (lambda: libra.PackedSequence(8, sample_tokens=[8], pad=1), "PackedSequence takes no 'pad'"),
    (lambda: libra.make_plan(options(), [[8]]), "make_plan cannot take sequences=[[8]], a list: it "
     "must be a sequence of libra.PackedSequence"),
    (lambda: libra.make_plan(dict(q_heads=8), [SEQUENCE]), "options={'q_heads': 8}, a dict: it must"
     " be libra.PlanOptions"),
    (lambda: libra.make_plan(options(), [SEQUENCE], memory_cap="1G"), "memory_cap='1G', a str: it "
     "must be an int or None"),
    (lambda: libra.make_plan(options(), [SEQUENCE], clusters="hgx-h200"), "do you mean cluster?"),
])
def test_an_argument_that_cannot_be_is_one_line_that_says_what_where_and_what_it_must_be(call,
                                                                                         words):
    with pytest.raises(libra.ConfigError, match=re.escape(words)) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_long_values_are_cut_short_and_kept_on_a_line():
    with pytest.raises(libra.ConfigError) as raised:
        libra.PackedSequence("a \n\n b" * 1000, [8])
    assert len(str(raised.value)) < 200 and "\n" not in str(raised.value)


def test_defaults_that_do_not_fit_are_called_by_their_names():
    made = libra.PlanOptions(q_heads=2, kv_heads=2, head_dim=8)
    with pytest.raises(libra.ConfigError, match=re.escape(
            "chunks M 2 (the default) does not cut a shard of 1 query heads, q_heads 2 / "
            "head_shards H 2 (the default), into")):
        libra.make_plan(made, [libra.PackedSequence(8, [8])])


def test_sizes_are_read_as_people_write_them():
    assert libra.parse_size("64k") == libra.parse_size("64K") == 65536
    with pytest.raises(libra.ConfigError, match="256K"):
        libra.parse_size("64KB")


def test_faithful_options_are_the_papers():
    made = options().faithful()
    assert (made.placer, made.fetch, made.local_first) == ("paper", "whole", False)
    assert made.chunks == 4


def test_the_placer_paper_fetches_whole_groups_unless_told():
    assert options(placer="paper").fetch == "whole"
    assert options(placer="paper", fetch="prefix").fetch == "prefix"


@pytest.mark.parametrize("wrong, word", [
    ({"placer": "best"}, "reserve"),
    ({"home": "zigzag"}, "zigzag-row"),
    ({"dtype": "int8"}, "bf16"),
    ({"tau": float("nan")}, "0.03"),
    ({"tau": -1.0}, "0.03"),
])
def test_a_name_that_is_not_there_is_an_error_that_lists_the_names(wrong, word):
    with pytest.raises(libra.ConfigError, match=word):
        options(**wrong)


def test_a_broken_rule_names_the_nearest_legal_value():
    with pytest.raises(libra.ConfigError, match="nearest legal"):
        options(head_shards=3).check(1)
    with pytest.raises(libra.ConfigError, match="nearest legal"):
        libra.check_window(8, 4, 3)


@pytest.mark.parametrize("unused, words", [
    (dict(placer="paper", search_us=5), "search_us is for placer balanced, not paper: use that"),
    (dict(placer="reserve", inter_node_weight=5), "inter_node_weight is for placer balanced, not"),
    (dict(placer="ulysses", head_shards=1, node_fetch=True), "node_fetch is for placer balanced"),
])
def test_an_option_that_the_placer_does_not_look_at_is_an_error_as_in_the_program(unused, words):
    made = options(**unused)
    with pytest.raises(libra.ConfigError, match=words):
        made.check(1)
    with pytest.raises(libra.ConfigError, match=words):
        libra.make_plan(made, [libra.PackedSequence(8, [8])])
    with pytest.raises(libra.ConfigError, match=words):
        libra._core.Planning(made)
    made.faithful().check(1)


def test_a_cluster_is_for_placers_that_look_at_links():
    sequences = [libra.PackedSequence(8, [8])]
    libra.make_plan(options(placer="reserve"), sequences, cluster="hgx-h200")
    with pytest.raises(libra.ConfigError, match="cluster is for placer balanced or reserve, not"):
        libra.make_plan(options(placer="none"), sequences, cluster="hgx-h200")


def test_errors_have_one_base():
    for error in (libra.ConfigError, libra.InputError, libra.PlanError, libra.TransportError):
        assert issubclass(error, libra.Error)


def skewed_plan(**changes):
    return libra.make_plan(options(**changes), [
        libra.PackedSequence(256, [256]), libra.PackedSequence(256, [8] * 30)])


def test_a_plan_balances_what_was_skewed():
    plan = skewed_plan()
    assert plan.workers == 2
    assert plan.skew > 1.8
    assert plan.balance < plan.skew
    assert sum(plan.loads) == 8 * sum(libra.sequence_cost(s) for s in plan.sequences)
    assert plan.traffic["forward"] > 0
    assert plan.validate() == []


def test_equal_plans_have_equal_fingerprints_and_different_ones_do_not():
    assert skewed_plan() == skewed_plan()
    assert skewed_plan().fingerprint == skewed_plan().fingerprint
    assert skewed_plan().fingerprint != skewed_plan(tau=0.5).fingerprint


def test_plans_travel_as_bytes():
    plan = skewed_plan()
    assert libra.PoolPlan.from_bytes(plan.to_bytes()) == plan
    with pytest.raises(libra.PlanError):
        libra.PoolPlan.from_bytes(plan.to_bytes()[:-1])


@pytest.mark.parametrize("home", ["contiguous", "zigzag-row", "zigzag-document"])
def test_homes_hold_every_token_once(home):
    plan = libra.make_plan(options(cp=4, home=home), [libra.PackedSequence(101, [7, 41, 50])])
    tokens = sorted(t for w in range(4) for begin, end in plan.runs(w) for t in range(begin, end))
    assert tokens == list(range(101))
    assert sum(plan.rows(w) for w in range(4)) == 101


def test_explicit_runs_are_homes():
    plan = libra.make_plan(options(home="explicit", cp=2, explicit_runs=[[[(0, 3)], [(3, 10)]]]),
                           [libra.PackedSequence(10, [10])])
    assert plan.runs(0) == [(0, 3)]
    assert plan.rows(1) == 7


def test_a_worker_that_is_not_there_is_an_error():
    with pytest.raises(libra.ConfigError, match="workers 0 to 1"):
        skewed_plan().rows(2)


def test_samples_longer_than_their_sequence_are_an_error():
    with pytest.raises(libra.ConfigError):
        libra.make_plan(options(), [libra.PackedSequence(10, [11])])


def test_memory_over_the_cap_is_refused_with_what_would_do():
    free = skewed_plan().memory(0)
    assert free["arena"] > 0
    with pytest.raises(libra.ConfigError, match="least"):
        libra.make_plan(options(), skewed_plan().sequences, memory_cap=1)


def test_costs_in_seconds_are_another_unit():
    sequences = skewed_plan().sequences
    assert (libra.make_plan(options(), sequences, device_profile="h200").loads !=
            skewed_plan().loads)
    with pytest.raises(libra.InputError):
        libra.make_plan(options(), sequences, device_profile="no-such-device")


def test_plans_for_a_cluster_know_its_links():
    sequences = [libra.PackedSequence(1 << 18, [1 << 18])] + [
        libra.PackedSequence(1 << 18, [4096] * 64) for _ in range(7)]
    wide = libra.PlanOptions(q_heads=32, kv_heads=8, head_dim=128, cp=8)
    plan = libra.make_plan(wide, sequences, cluster="hgx-h200")
    assert plan.options.node_fetch and plan.tiles_moved > 0
    tiny = [libra.PackedSequence(8, [1] * n) for n in range(1, 9)]
    assert libra.make_plan(wide, tiny, cluster="hgx-h200").tiles_moved == 0
    assert not libra.make_plan(wide, sequences, cluster="nvl72-gb200").options.node_fetch


def test_plans_for_a_cluster_know_which_ranks_share_its_nodes():
    wide = libra.PlanOptions(q_heads=32, kv_heads=8, head_dim=128, cp=8)
    sequences = [libra.PackedSequence(1 << 18, samples) for samples in ([1 << 18], [4096] * 64)]
    pool = libra.Pool(alone=True)
    for ranks, node in [(range(16), 8), (range(0, 128, 8), 1), (range(2, 34, 2), 1),
                        (range(4, 20), 4)]:
        pool.ranks = list(ranks)
        plan = libra.Planner(pool, wide, cluster="hgx-h200").planning.plan(sequences)
        assert plan.options.gpus_per_node == node, ranks
    pool.close()


def test_a_cluster_that_is_not_there_or_with_a_memory_cap_is_an_error():
    for wrong in (dict(cluster="no-such-cluster"), dict(cluster="hgx-h200", memory_cap=1 << 30)):
        with pytest.raises(libra.Error):
            libra.make_plan(options(), skewed_plan().sequences, **wrong)


def test_vrsp_evens_out_pools():
    costs = [9, 1, 8, 2, 7, 3]
    pools = libra.assign_pools(costs, 2)
    assert sorted(i for pool in pools for i in pool) == list(range(6))
    assert [sum(costs[i] for i in pool) for pool in pools] == [10, 10, 10]
    assert libra.assign_pools(costs, 2, "production") == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(libra.ConfigError):
        libra.assign_pools(costs, 4)

"""The timeline's model on programs made by hand, whose clocks can be counted on paper."""

from dataclasses import replace
from random import Random

import pytest

from flashladder.core.errors import FlashLadderError
from flashladder.simulator import clocks, replay
from flashladder.simulator.replay import (
    Arrive,
    Async,
    Barrier,
    Commit,
    Copy,
    Load,
    Store,
    Stretch,
    Together,
    WaitGroups,
    WaitPhase,
    Warp,
)

# Round numbers, unlike any of clocks.toml: what a test expects is not fitted to anything.
MODEL = replace(
    clocks.load(), memory_latency=100.0, tma_latency=200.0, memory_byte=0.5, wgmma_latency=10.0, barrier=5.0,
    issue=1.0, issue_beside=1.0, special=8.0, special_beside=8.0, alu=2.0, alu_beside=2.0, fp32_takes=0.0,
)  # fmt: skip


def run(*programs, model=MODEL):
    """Replays one block with a warp for each list of steps."""
    return replay.replay([Warp(0, number, tuple(steps)) for number, steps in enumerate(programs)], model)


def apart(steps, place=4):
    """The steps as those of two warps of one scheduler, number 0 and number 4, with others that do nothing between."""
    return run(*[steps[0]] + [[]] * (place - 1) + [steps[1]])


def check(result):
    """What holds of every timeline."""
    for span in result.spans:
        assert 0 <= span.start < span.end <= max(result.end, span.end)
    for bars in result.busy.values():
        for (_, end), (start, _) in zip(bars, bars[1:], strict=False):
            assert end <= start
        assert all(start < end for start, end in bars)
    own = {}
    for span in sorted(result.spans, key=lambda one: one.start):
        if span.kind not in ("wgmma", "bytes"):
            assert span.start >= own.get(span.warp, 0.0) - 1e-9, "a warp does two things at once"
            own[span.warp] = span.end
    for (unit, _), bars in result.busy.items():
        total = sum(end - start for start, end in bars)
        assert unit == "memory" or unit == "tensor" or result.end >= total
    return result


def product(clocks_, **more):
    return Stretch("product", {"tensor": clocks_}, **more)


def exps(clocks_, **more):
    return Stretch("arithmetic", {"special": clocks_}, **more)


def test_a_warp_alone_takes_its_busiest_unit():
    result = check(run([Stretch("arithmetic", {"issue": 300.0, "special": 480.0, "shared": 20.0}, pace=100.0)]))
    assert result.end == pytest.approx(480)


def test_or_its_pace_and_then_the_latency():
    result = check(run([Stretch("product", {"tensor": 300.0}, pace=450.0, latency=30.0), exps(40.0)]))
    assert [(one.start, one.end) for one in result.spans] == [
        (0, pytest.approx(480)),
        (pytest.approx(480), pytest.approx(520)),
    ]


def test_two_warps_of_a_scheduler_share_the_tensor_core():
    result = check(apart(([product(960.0)], [product(960.0)])))
    assert result.end == pytest.approx(1920)
    # They take turns: neither is done much before the other.
    assert min(one.end for one in result.spans) > 1920 - 2 * replay.QUANTUM


def test_warps_of_two_schedulers_do_not():
    assert run([product(960.0)], [product(960.0)]).end == pytest.approx(960)


def test_shared_memory_is_the_multiprocessors():
    work = Stretch("copy", {"shared": 480.0})
    assert run([work], [work], [work]).end == pytest.approx(3 * 480)


def test_exponentials_hide_behind_the_other_warps_products():
    together = check(apart(([product(960.0), exps(960.0)], [exps(960.0), product(960.0)])))
    assert together.end == pytest.approx(1920)
    assert run([product(960.0), exps(960.0)]).end == pytest.approx(1920)
    # In step with one another they do not: both want the same unit first.
    same = apart(([product(960.0), exps(960.0)], [product(960.0), exps(960.0)])).end
    assert same > 2500


def test_units_beside_products_are_slower_and_products_beside_additions_are():
    """The first warpgroup multiplies for 640 clocks; the other begins at the same time and computes."""
    model = replace(MODEL, issue_beside=3.0, special_beside=24.0, alu_beside=6.0, fp32_takes=0.5)

    def ends(fp32=0, **units):
        products = [Together(64.0)] * 10 + [Commit("wgmma"), WaitGroups("wgmma", 0)]
        work = [Stretch("arithmetic", units, fp32=fp32)]
        done = check(run(*[products] * 4, *[work] * 4, model=model))
        return done.ends[0] - model.wgmma_latency, done.ends[4]

    assert ends(special=80.0) == pytest.approx((640, 240))
    assert ends(alu=80.0) == pytest.approx((640, 240))
    assert ends(issue=80.0) == pytest.approx((640, 240))
    assert ends(shared=8.0) == pytest.approx((640, 8)), "the multiprocessor's are as fast as ever"
    assert ends(issue=80.0, fp32=80) == pytest.approx((680, 240))
    late = ends(issue=480.0, fp32=480)
    assert late[0] > 640 and late[1] == pytest.approx(480 + 2 * late[0] / 3, abs=replay.QUANTUM * 2)


def test_a_product_of_the_warp_itself_is_not_beside_it():
    model = replace(MODEL, issue_beside=3.0, special_beside=24.0)
    both = Stretch("product", {"tensor": 96.0, "issue": 96.0})
    assert run([both, exps(48.0)], model=model).end == pytest.approx(144)


def test_a_barrier_waits_for_the_last():
    key = ("barrier", 0, 1, 0)
    slow, fast = [product(500.0), Barrier(key, True), exps(10.0)], [Barrier(key, True), exps(10.0)]
    result = check(run(slow, fast))
    waits = [one for one in result.spans if one.warp == 1 and one.kind == "wait"]
    assert [(one.start, one.end, one.step) for one in waits] == [(0, pytest.approx(505), fast[0])]
    assert result.ends == [pytest.approx(515)] * 2


def test_who_only_arrives_goes_on():
    key = ("barrier", 0, 2, 0)
    result = check(run([Barrier(key, False), exps(300.0)], [exps(50.0), Barrier(key, True)]))
    assert result.ends[1] == pytest.approx(55) and result.ends[0] == pytest.approx(300)


def test_uses_of_a_barrier_are_apart():
    def keys(use):
        return ("barrier", 0, 0, use)

    turns = [[step for use in range(3) for step in (exps(work), Barrier(keys(use), True))] for work in (100.0, 40.0)]
    assert run(*turns).end == pytest.approx(3 * 105)


def ring(tiles, buffers, bytes_, work):
    """A producer with so many buffers, and a consumer."""
    producer, consumer = [], []
    for tile in range(tiles):
        buffer, phase = tile % buffers, tile // buffers
        if phase:
            producer.append(WaitPhase(("empty", buffer, phase - 1)))
        producer += [Arrive(("full", buffer, phase)), Copy(("full", buffer, phase), bytes_)]
        consumer += [WaitPhase(("full", buffer, phase)), exps(work), Arrive(("empty", buffer, phase))]
    return producer, consumer


def test_one_buffer_hides_nothing():
    result = check(run(*ring(4, 1, 100, 480.0)))
    # Each turn: 50 clocks on the way, 200 until it is there, 5 to wake, 480 of work, 5 to wake the producer.
    assert result.ends[1] == pytest.approx(4 * (250 + 5 + 480) + 3 * 5)


def test_two_buffers_hide_the_copies():
    result = check(run(*ring(4, 2, 100, 480.0)))
    assert result.ends[1] == pytest.approx(255 + 4 * 480)
    waits = [one for one in result.spans if one.warp == 1 and one.kind == "wait"]
    assert len(waits) == 1 and waits[0].step == WaitPhase(("full", 0, 0))


def test_copies_share_the_way():
    # 1,000 bytes take 500 clocks each, whoever asks.
    result = check(run([Copy(("a",), 1000), WaitPhase(("a",))], [Copy(("b",), 1000), WaitPhase(("b",))]))
    assert result.ends == [pytest.approx(705), pytest.approx(1205)]


def test_groups_are_waited_for_from_the_oldest():
    steps = [Async(200), Commit("cp.async"), Async(400), Commit("cp.async"), WaitGroups("cp.async", 1), exps(1.0),
             WaitGroups("cp.async", 0)]  # fmt: skip
    waits = [one for one in check(run(steps)).spans if one.kind == "wait"]
    assert [one.end for one in waits] == [pytest.approx(200), pytest.approx(400)]


def test_fewer_groups_than_may_be_left_are_not_waited_for():
    steps = [Async(200), Commit("cp.async"), Async(400), Commit("cp.async"), WaitGroups("cp.async", 3)]
    assert check(run(steps)).end == 0


def test_what_no_group_has_is_waited_for_by_nobody():
    result = check(run([Async(200), WaitGroups("cp.async", 0)]))
    assert result.end == 0


def test_an_arrival_behind_copies_comes_with_them():
    result = check(run([Async(200), Arrive(("full",), copies=True), exps(10.0)], [WaitPhase(("full",))]))
    assert result.ends == [pytest.approx(10), pytest.approx(205)]


def test_a_load_is_waited_for_at_once():
    assert run([Load(100), exps(10.0)]).end == pytest.approx(50 + 100 + 10)


def test_a_bulk_store_goes_on_by_itself():
    result = check(run([Store(100), Commit("bulk"), exps(10.0), WaitGroups("bulk", 0)]))
    assert result.end == pytest.approx(50 + 200)
    assert [one.kind for one in result.spans].count("bytes") == 1


def warpgroup(*steps):
    return [list(steps) for _ in range(4)]


def test_wgmma_goes_on_by_itself():
    result = check(run(*warpgroup(Together(64.0), Together(64.0), Commit("wgmma"), exps(48.0), WaitGroups("wgmma", 0))))
    assert result.ends == [pytest.approx(2 * 64 + 10)] * 4
    assert sum(end - start for start, end in result.busy["tensor", 0]) == pytest.approx(128)


def test_a_warpgroup_waits_for_its_last_warp():
    programs = warpgroup(Together(64.0), Commit("wgmma"), WaitGroups("wgmma", 0))
    programs[2].insert(0, exps(100.0))
    assert run(*programs).ends == [pytest.approx(100 + 64 + 10)] * 4


def test_two_warpgroups_take_the_tensor_cores_in_turn():
    programs = warpgroup(Together(640.0), Commit("wgmma"), WaitGroups("wgmma", 0))
    result = check(run(*programs, *programs))
    assert result.ends == [pytest.approx(650)] * 4 + [pytest.approx(1290)] * 4


def test_ping_pong_is_worth_what_the_softmax_takes():
    def turns(count):
        own = [Together(500.0), Commit("wgmma"), WaitGroups("wgmma", 0), exps(500.0)]
        return [own * count for _ in range(4)]

    both = run(*turns(8), *turns(8)).end
    assert both < 1.15 * run(*turns(8)).end, "the second warpgroup's products fit under the first one's softmax"
    assert both >= 16 * 500, "but the tensor cores are never in two places"


def test_the_same_twice():
    programs = ring(6, 2, 100, 300.0)
    first, second = run(*programs), run(*programs)
    assert first.spans == second.spans and first.busy == second.busy and first.ends == second.ends


def test_what_never_comes_is_said_in_words():
    with pytest.raises(FlashLadderError, match="no end: warp 0 waits for ever at step 0, WaitPhase"):
        run(
            [WaitPhase(("full",))],
            [WaitPhase(("empty",)), Arrive(("full",))],
            [WaitPhase(("full",)), Arrive(("empty",))],
        )


def test_what_nobody_completes_is_said_in_words():
    with pytest.raises(FlashLadderError, match=r"warp 1 waits for \('full', 3\), which nothing completes: kernel.cu:7"):
        run([Arrive(("full", 2))], [WaitPhase(("full", 3), place="kernel.cu:7")])


def random_programs(seed):
    """Warps of two blocks with work of all kinds that meet at barriers, in groups and over a ring of buffers."""
    random = Random(seed)

    def work():
        units = {unit: random.choice((0.0, 20.0, 130.0, 700.0)) for unit in random.sample(replay.UNITS[:4], 3)}
        return Stretch(random.choice(("product", "arithmetic", "copy")), units, random.choice((0.0, 90.0)), 5.0)

    warps = []
    for block in range(2):
        programs = [[] for _ in range(8)]
        for turn in range(random.randint(1, 4)):
            product_ = Together(random.choice((16.0, 128.0)))  # the same instruction in all four warps
            for number, steps in enumerate(programs):
                steps.append(work())
                if number == 5:
                    steps += [Arrive(("full", block, turn)), Copy(("full", block, turn), random.choice((64, 4096)))]
                if number != 5 and random.random() < 0.5:
                    steps.append(WaitPhase(("full", block, turn)))
                if number < 4:
                    steps += [product_, Commit("wgmma"), work()]
                    steps.append(WaitGroups("wgmma", random.choice((0, 1))))
                if number > 5:
                    steps += [Async(random.choice((128, 2048))), Commit("cp.async"), work(), WaitGroups("cp.async", 1)]
                steps.append(Barrier((block, turn), waits=number != 6))
        warps += [Warp(block, number, tuple(steps)) for number, steps in enumerate(programs)]
    return warps


@pytest.mark.parametrize("seed", range(25))
def test_any_program_keeps_the_rules(seed):
    warps = random_programs(seed)
    result = check(replay.replay(warps, MODEL))
    assert replay.replay(warps, MODEL) == result
    wanted = dict.fromkeys(result.busy, 0.0)
    for number, warp in enumerate(warps):
        scheduler, alone = replay.scheduler_of(number, MODEL), 0.0
        for step in warp.steps:
            if isinstance(step, Stretch):
                alone += max(step.pace, *step.units.values()) + step.latency
                for unit, clocks_ in step.units.items():
                    if clocks_:
                        wanted[unit, scheduler if unit in replay.OF_SCHEDULER else 0] += clocks_
            elif isinstance(step, Together):
                wanted["tensor", scheduler] += step.clocks
            elif isinstance(step, (Copy, Async)):
                wanted["memory", 0] += step.bytes * MODEL.memory_byte
        assert result.ends[number] >= alone - 1e-6, "no warp is faster than alone"
    for place, bars in result.busy.items():
        assert sum(end - start for start, end in bars) == pytest.approx(wanted[place]), "no work is lost or done twice"
    # Nobody leaves a barrier before all have come.
    for block in range(2):
        waits = [one for one in result.spans if isinstance(one.step, Barrier) and one.step.key[0] == block]
        for turn in {one.step.key[1] for one in waits}:
            own = [one for one in waits if one.step.key[1] == turn]
            assert max(one.start for one in own) + MODEL.barrier <= min(one.end for one in own) + 1e-6


def test_nothing_takes_no_time():
    result = check(run([], []))
    assert result.end == 0 and not result.spans
    assert replay.replay([], MODEL).end == 0


def test_blocks_have_warpgroups_of_their_own():
    own = warpgroup(Together(64.0), Commit("wgmma"), WaitGroups("wgmma", 0))
    warps = [Warp(block, number, tuple(steps)) for block in range(2) for number, steps in enumerate(own)]
    assert replay.replay(warps, MODEL).end == pytest.approx(64 + 64 + 10)


# Mistakes planted in the model, each caught by a test above.
def _no_turns(machine, unit, number, now, clocks_):
    machine.result.busy.setdefault((unit, 0), []).append((now, now + clocks_))
    return now + clocks_


PLANTED = {
    "units serve everyone at once": ("_book", _no_turns, test_two_warps_of_a_scheduler_share_the_tensor_core),
    "who waits at a barrier goes on": (
        "_barrier", lambda machine, number, state, step, now: machine._go_on(number, now),
        test_a_barrier_waits_for_the_last,
    ),
    "copies come at once": (
        "_copy",
        lambda machine, number, state, step, now: (machine._comes(step.key, now), machine._go_on(number, now)),
        test_one_buffer_hides_nothing,
    ),
    "wgmma is waited for at once": (
        "_together", lambda machine, number, state, step, now: machine._go_on(number, now + step.clocks),
        test_wgmma_goes_on_by_itself,
    ),
    "all groups are waited for": (
        "_waitgroups",
        lambda machine, number, state, step, now: machine._go_on(
            number, max((one.end for group in state.groups[step.queue] for one in group), default=now)),
        test_groups_are_waited_for_from_the_oldest,
    ),
    "additions take nothing from products": (
        "_slow_products", lambda machine, number, now, clocks_: None,
        test_units_beside_products_are_slower_and_products_beside_additions_are,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistakes_are_caught(name, monkeypatch):
    method, wrong, test = PLANTED[name]
    monkeypatch.setattr(replay.Machine, method, wrong)
    with pytest.raises((AssertionError, FlashLadderError)):
        test()


def test_every_clock_has_its_origin():
    for name, row in clocks.table().items():
        assert row["value"] > 0 and row["from"] in clocks.ORIGINS and row["why"], name
    fitted = {name for name, row in clocks.table().items() if row["from"] == "fitted"}
    assert fitted == {"mma_pace", "arithmetic_pace"}, "what docs/timeline.md says was fitted"


@pytest.mark.parametrize(
    "change, words",
    [
        (("value = 6.0", "value = 0"), "mma_sync must have a value above 0"),
        (("value = 6.0", 'value = "six"'), "mma_sync must have a value above 0"),
        (('from = "measured"', 'from = "guessed"'), "must say why, and from where"),
        (("[mma_sync]", "[mma]"), r"missing \['mma_sync'\], unknown \['mma'\]"),
        (("value = 6.0", "value = "), "cannot be read"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, change, words):
    file = tmp_path / "clocks.toml"
    text = clocks.FILE.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change))
    with pytest.raises(FlashLadderError, match=words):
        clocks.load(file)

"""A naive kernel, or an earlier stage's, is right and loses the technique's points, in every assignment."""

from dataclasses import replace

import pytest
from shares import share

from flashladder.classroom import assignment as assignments
from flashladder.classroom import exercise, trials
from flashladder.classroom.exercise import techniques
from flashladder.classroom.grading import facts_of
from flashladder.ladder import stages
from flashladder.ladder.kernels import Kernel

# In the place of any stage's kernel: a thread computes whole rows, and nothing of any technique is in it.
BODY = """
    const int64_t rows = int64_t(params.B) * params.Hq * params.Nq, blocks = int64_t(gridDim.x) * gridDim.y * gridDim.z;
    const int64_t block = blockIdx.x + int64_t(gridDim.x) * (blockIdx.y + int64_t(gridDim.y) * blockIdx.z);
    for (int64_t at = block * blockDim.x + threadIdx.x; at < rows; at += blocks * blockDim.x) {
        const int64_t row = at % params.Nq, head = at / params.Nq % params.Hq, batch = at / params.Nq / params.Hq;
        const int64_t kv = head / (params.Hq / params.Hkv);
        const T *q = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch +
                     head * params.Q.stride_head + row * params.Q.stride_row;
        const T *k = static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + kv * params.K.stride_head;
        const T *v = static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + kv * params.V.stride_head;
        T *o = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
               row * params.O.stride_row;
        const int keys = params.causal ? min(int(row) + params.Nkv - params.Nq + 1, params.Nkv) : params.Nkv;
        float sum = 0, most = -INFINITY, acc[d_head];
        for (int x = 0; x < d_head; ++x) acc[x] = 0;
        for (int j = 0; j < keys; ++j) {
            float s = 0;
            for (int x = 0; x < d_head; ++x)
                s += float(q[x]) * float(k[j * params.K.stride_row + x]);
            s *= params.scale;
            const float before = most;
            most = fmaxf(most, s);
            const float old = before == -INFINITY ? 0.0f : expf(before - most), p = expf(s - most);
            sum = sum * old + p;
            for (int x = 0; x < d_head; ++x) acc[x] = acc[x] * old + p * float(v[j * params.V.stride_row + x]);
        }
        for (int x = 0; x < d_head; ++x) o[x] = T(sum > 0 ? acc[x] / sum : 0.0f);
        if (params.log_sum_exp) params.log_sum_exp[at] = sum > 0 ? most + logf(sum) : -INFINITY;
    }
"""


def naive(stage: Kernel) -> str:
    """The stage's kernel.cu with this body in its (last) kernel."""
    text = stage.kernel.read_text()
    begin = text.index("{", text.index("flash_kernel(", text.rindex("__global__"))) + 1
    end = text.index("\n}\n", begin)
    return text[:begin] + BODY + text[end + 1 :]


EVERY = [(one, number) for one in assignments.all_assignments() for number in one.stages]


def facts(one: assignments.Assignment, number: int, source: str, sandbox, name: str):
    checks = one.checks(exercise.get(number, name).checks)
    judgement = trials.judge(stages.get(number), source, one, sandbox, techniques(checks), diagnose=False)
    return judgement, facts_of(one, checks, judgement)


@pytest.mark.parametrize("one, number", EVERY, ids=lambda value: getattr(value, "name", value))
def test_every_exercise_is_graded_by_all_that_its_stage_shows(one, number):
    for item in one.of_stage(number).items:
        checks = one.checks(exercise.get(number, item.name).checks)
        assert techniques(checks) is None, f"{item.name} of {one.name} asks for {checks}"
    assert one.credit["technique"] > 0


@pytest.mark.parametrize(
    "one, number",
    share([pytest.param(*one, id=f"{one[0].name}-{one[1]}", marks=pytest.mark.long) for one in EVERY], 12),
)
def test_a_naive_kernel_is_right_and_loses_the_technique(one, number, sandbox):
    part = one.of_stage(number)
    if one.name == "turns":  # a thread for each row of the largest of its sizes takes more memory than a run may have
        part = replace(part, sizes=part.public_sizes)
    judgement, found = facts(part, number, naive(stages.get(number)), sandbox, part.items[0].name)
    assert judgement.built.ok, judgement.built.words
    wrong = judgement.first_wrong
    assert wrong is None, f"{wrong.trial}: {wrong.words}"
    assert not judgement.hazards, judgement.hazards
    fact = found["technique"]
    assert not fact.passed and fact.words.startswith("right, but"), fact


# Stages whose kernels can be launched as the one before is: the same grid, threads and shared memory.
LIKE_THE_ONE_BEFORE = [
    number
    for number in sorted({number for _, number in EVERY})
    if (before := stages.previous_of(stages.get(number)))
    and before.data["launch"][-1] == {**stages.get(number).data["launch"][-1]}
]


@pytest.mark.parametrize(
    "number", share([pytest.param(one, id=str(one), marks=pytest.mark.long) for one in LIKE_THE_ONE_BEFORE], 2)
)
def test_the_stage_before_loses_the_technique(number, sandbox):
    one = next(one for one, of in EVERY if of == number).of_stage(number)
    earlier = stages.previous_of(stages.get(number))
    judgement, found = facts(one, number, earlier.kernel.read_text(), sandbox, one.items[0].name)
    assert judgement.built.ok, judgement.built.words
    assert not found["technique"].passed and found["technique"].words, found


def test_without_credit_for_it_the_technique_is_what_an_exercise_asks_for():
    one = replace(EVERY[0][0], credit={"builds": 0.1, "correct": 0.9})
    assert one.checks(("correct", "hazards")) == ("correct", "hazards")
    assert one.checks(("correct", "technique")) == ("correct", "technique")

"""The stages whose kernels compute gradients: stages/NN_name/kernel.cu with a flash_backward() of
common/include/attention_backward.h, and `backward = true` in stage.toml. They are tested, run, timed and broken as the
others are; lessons, exercises and blank pages are for stages that compute attention alone."""

from flashladder.ladder.kernels import WithKernel


class Backward(WithKernel):
    @property
    def tests(self) -> list[str]:
        return ["tests/stages/test_backward.py"]

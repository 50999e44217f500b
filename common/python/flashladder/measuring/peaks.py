"""What GPUs' tensor cores give at most, by their data sheets: TFLOP/s of 16-bit products summed in fp32, without
sparsity, at the boost clock; twice as many of e4m3, on those that have it. For plausibility alone: nothing is compared
with these figures in tables or plots."""

import re

# The first that fits the device's name counts, so longer names stand before shorter ones.
_DENSE = (
    (r"\bB200\b", 2250),
    (r"\bH20\b", 148),
    (r"\bH100 (PCIe|NVL)\b", 836),
    (r"\b(H100|H200|H800|GH200)\b", 990),
    (r"\bA(100|800)\b", 312),
    (r"\bA30\b", 165),
    (r"\bA40\b", 150),
    (r"\bA10G?\b", 125),
    (r"\bL40S\b", 362),
    (r"\bL40\b", 181),
    (r"\bL4\b", 121),
    (r"\bT4\b", 65),
    (r"\bRTX 6000 Ada\b", 364),
    (r"\bRTX A6000\b", 155),
    (r"\bRTX 5090\b", 210),
    (r"\bRTX 4090\b", 165),
    (r"\bRTX 4080\b", 105),
    (r"\bRTX 3090\b", 80),
    (r"\bRTX 3080\b", 68),
)
# Cards run faster than their data sheet says where they are cool; the cards differ, too.
SLACK = 1.15


def dense(device: str, dtype: str = "bf16") -> float | None:
    """TFLOP/s of a device such as "NVIDIA A100-SXM4-80GB"; None where it is not in the table."""
    factor = 2 if dtype == "e4m3" else 1
    return next((float(factor * peak) for pattern, peak in _DENSE if re.search(pattern, device)), None)

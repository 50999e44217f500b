"""What tex, tld4 and tex.level return, against the formulas of the CUDA programming guide in NumPy.

Address modes, filters, formats and shapes, at places inside, on edges and far outside; one process reads all cases of a
test. On a GPU (FLASHLADDER_DEVICE=gpu) filtered values may differ by the last of the eight bits of the weights, since
the guide leaves their rounding open; `test_where_the_guide_is_silent` shows what the simulator chose elsewhere.
"""

import itertools
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from cudart import ON_GPU, run_program

PROGRAM = Path(__file__).parent / "programs" / "execution" / "texture_values.cu"
GEOMETRIES = ["1d", "2d", "3d", "a1d", "a2d", "cube", "acube"]
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2}
MODES = ["wrap", "clamp", "mirror", "border"]
KINDS = {"i": 0, "u": 1, "f": 2}
PLACE = np.dtype([("at", np.float32, 3), ("level", np.float32), ("layer", np.int32)])
BORDER = np.array([0.25, -1.5, 3, 0.5], np.float32)


@dataclass
class Case:
    """texels: (depth, height, width, channels); a list of those, where there are levels."""

    geometry: str
    texels: np.ndarray
    places: np.ndarray
    modes: tuple = ("clamp",) * 3
    linear: bool = False
    normalized_floats: bool = False
    normalized: bool = False
    srgb: bool = False
    resource: int = 0
    operation: int = 0
    component: int = 0
    linear_levels: bool = False
    levels: list = field(default_factory=list)

    @property
    def floats(self):
        small = self.texels.dtype.itemsize < 4
        return self.texels.dtype.kind == "f" or (self.normalized_floats and small)

    def packed(self):
        depth, height, width, channels = self.texels.shape
        flat = self.geometry in ("1d", "a1d")
        size = (width, 0 if flat else height, 0 if self.geometry in ("1d", "2d") else depth)
        kind, bits = KINDS[self.texels.dtype.kind], 8 * self.texels.dtype.itemsize
        numbers = [self.resource, self.operation, GEOMETRIES.index(self.geometry), *size, kind, bits, channels]
        numbers += [len(self.levels), *map(MODES.index, self.modes), self.linear, self.linear_levels]
        numbers += [
            self.normalized_floats and self.texels.dtype.kind != "f" and self.floats,
            self.srgb,
            self.normalized,
            self.floats,
        ]
        header = struct.pack(f"<{len(numbers)}i", *numbers) + BORDER.tobytes()
        header += struct.pack("<2i", self.component, len(self.places))
        return header + b"".join(t.tobytes() for t in self.levels or [self.texels]) + self.places.tobytes()


def read(cases, folder):
    """The words that each case's reads return: [(places, 4) uint32]."""
    (folder / "cases").write_bytes(b"".join(case.packed() for case in cases))
    run_program(PROGRAM, [folder / "cases", folder / "answers"]).check()
    words = np.fromfile(folder / "answers", np.uint32).reshape(-1, 4)
    return np.split(words, np.cumsum([len(case.places) for case in cases])[:-1])


# ---- the reference ----


def values(case, texels):
    """float64 of what a texel is read as; integers that stay integers as they are."""
    if not case.floats or texels.dtype.kind == "f":
        return texels.astype(np.float64)
    read_as = (texels.astype(np.float32) / np.float32(np.iinfo(texels.dtype).max)).astype(np.float64)
    if case.srgb:
        light = np.where(read_as <= 0.04045, read_as / 12.92, ((read_as + 0.055) / 1.055) ** 2.4)
        read_as[..., :3] = light.astype(np.float32)[..., :3]
    return np.maximum(read_as, -1)


def border_of(case):
    """float64 of BORDER as the texels' own format holds it, as an H200 shows."""
    kind = case.texels.dtype
    if kind.kind == "f":
        return BORDER.astype(kind).astype(np.float64)
    if not case.floats:
        return BORDER.view(np.uint32).astype(kind).astype(np.float64)
    greatest = np.float32(np.iinfo(kind).max)
    inside = np.clip(BORDER, -1 if kind.kind == "i" else 0, 1)
    return (np.ceil(inside * greatest - np.float32(0.5)) / greatest).astype(np.float64)


def address(i, n, mode):
    """The texel that index i of n texels leads to; -1: the border."""
    if mode == "wrap":
        return i % n
    return np.where((i < 0) | (i >= n), -1, i) if mode == "border" else np.clip(i, 0, n - 1)


def taps(case, x, n, mode, linear):
    """[(texel, weight)] along one axis, for the coordinates x (float64)."""
    if case.normalized or case.geometry in ("cube", "acube"):
        fraction = x - np.floor(x)
        if mode == "wrap":
            x = fraction
        elif mode == "mirror" and linear:
            x = np.where(np.floor(x) % 2 == 0, fraction, 1 - fraction)
        elif mode == "mirror":  # by the texel's number, as a GPU shows
            i = np.floor(fraction * n).astype(np.int64)
            return [(address(np.where(np.floor(x) % 2 == 0, i, n - 1 - i), n, mode), 1.0)]
        x = x * n
    elif mode in ("wrap", "mirror"):
        mode = "clamp"
    if not linear:
        return [(address(np.floor(x).astype(np.int64), n, mode), 1.0)]
    first = np.floor(x - 0.5)
    alpha = np.floor((x - 0.5 - first) * 256 + 0.5) / 256
    first = first.astype(np.int64)
    return [(address(first, n, mode), 1 - alpha), (address(first + 1, n, mode), alpha)]


def cube_places(at):
    """Face and two coordinates of directions, by the guide's table."""
    x, y, z = at.T
    ax, ay, az = abs(x), abs(y), abs(z)
    on_x, on_y = (ax >= ay) & (ax >= az), (ay > ax) & (ay >= az)
    face = np.select([on_x, on_y], [x < 0, 2 + (y < 0)], 4 + (z < 0)).astype(np.int64)
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    m = np.select([on_x, on_y], [ax, ay], az)
    return face, np.stack([(s / m + 1) / 2, (t / m + 1) / 2, 0 * s], 1)


def sampled(case, texels, linear=None):
    """(places, 4) float64 of one level."""
    linear = case.linear if linear is None else linear
    at, layer = case.places["at"].astype(np.float64), case.places["layer"].astype(np.int64)
    if case.geometry in ("cube", "acube"):
        face, at = cube_places(at)
        layer = 6 * layer + face
    depth, height, width, channels = texels.shape
    axes = [taps(case, at[:, k], n, case.modes[k], linear) for k, n in enumerate((width, height, depth))]
    axes[AXES[case.geometry] :] = [[(np.zeros(len(at), np.int64), 1.0)]] * (3 - AXES[case.geometry])
    if case.geometry == "1d" and linear and case.modes[1] == "border":  # as a GPU shows: it lies at its row's edge
        axes[1] = [(np.full(len(at), -1), 0.5), (np.zeros(len(at), np.int64), 0.5)]
    if case.geometry in ("a1d", "a2d", "cube", "acube"):
        axes[2] = [(layer, 1.0)]
    channel = np.zeros((*texels.shape[:3], 4))
    channel[..., 3] = 1
    channel[..., :channels] = values(case, texels)
    border = border_of(case)
    total = 0
    for (z, wz), (y, wy), (x, wx) in itertools.product(axes[2], axes[1], axes[0]):
        outside = (x < 0) | (y < 0) | (z < 0)
        texel = np.where(outside[:, None], border, channel[z, y, x])
        total = total + np.reshape(wx * wy * wz * np.ones(len(at)), (-1, 1)) * texel
    return total


def compare(case, got, want, exact=True):
    """want: float64. Filtered values on a GPU: within the weights' last bits."""
    channels = case.texels.shape[3]
    if case.operation == 2:
        channels = 4
    got, want = got[:, :channels], np.asarray(want)[:, :channels]
    if not case.floats:
        good = got == want.astype(np.int64).astype(np.uint32)
        shown = got.astype(np.int32)
    else:
        shown = got.view(np.float32)
        want = want.astype(np.float32)
        good = (shown == want) | (np.isnan(shown) & np.isnan(want))
        if ON_GPU and (case.linear or case.linear_levels or case.srgb):
            span = float(np.ptp(values(case, case.texels))) + float(np.ptp(BORDER))
            good |= abs(shown - want) <= 2 * AXES[case.geometry] * span / 256
    bad = np.argwhere(~good)
    lines = [f"{case.places[i]} channel {c}: {shown[i, c]}, not {want[i, c]}" for i, c in bad[:5]]
    name = f"{case.geometry} {case.texels.shape} {case.texels.dtype} {case.modes} linear={case.linear}"
    assert not len(bad), f"{name} normalized={case.normalized}: {len(bad)} wrong\n" + "\n".join(lines)


# ---- cases ----


def some_texels(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.dtype(kind)
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    texels = rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
    texels.flat[:2] = limits.min, limits.max
    return texels


def some_places(geometry, shape, normalized, count=400, seed=1):
    """Eighths of texels around the image (no edge of a texel, where the last bit of x * n decides), and random ones."""
    rng = np.random.default_rng(seed)
    depth, height, width = shape[:3]
    places = np.zeros(count, PLACE)
    if geometry in ("cube", "acube"):
        places["at"] = rng.standard_normal((count, 3))
        places["layer"] = rng.integers(0, depth // 6, count)
        return places
    for k, n in enumerate((width, height, depth)):
        x = rng.integers(-12 * n, 20 * n, count) / 8 + 1 / 16
        x[::3] = rng.uniform(-0.4 * n, 1.4 * n, len(x[::3]))
        places["at"][:, k] = x / n if normalized else x
    if geometry in ("a1d", "a2d"):
        places["layer"] = rng.integers(0, depth, count)
    return places


SHAPES = {
    "1d": (1, 1, 13),
    "2d": (1, 7, 13),
    "3d": (5, 7, 13),
    "a1d": (4, 1, 13),
    "a2d": (4, 7, 13),
    "cube": (6, 8, 8),
    "acube": (18, 8, 8),
}


def case_of(geometry, kind="float32", channels=1, **settings):
    shape = (*SHAPES[geometry], channels)
    places = some_places(geometry, shape, settings.get("normalized", False))
    return Case(geometry, some_texels(shape, kind), places, **settings)


def check(cases, folder):
    for case, got in zip(cases, read(cases, folder), strict=True):
        compare(case, got, sampled(case, case.texels))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_address_modes_and_filters(geometry, tmp_path):
    modes = [(m,) * 3 for m in MODES] + [("wrap", "mirror", "clamp"), ("border", "clamp", "wrap")]
    if geometry in ("cube", "acube"):
        modes = [("clamp",) * 3, ("border",) * 3]
    check(
        [
            case_of(geometry, channels=channels, modes=m, linear=linear, normalized=normalized)
            for m in modes
            for linear in (False, True)
            for normalized in (False, True)
            for channels in (1, 4)
        ],
        tmp_path,
    )


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"])
def test_formats(kind, tmp_path):
    integer = np.dtype(kind).kind in "iu"
    cases = []
    for channels, normalized_floats in itertools.product((1, 2, 4), (False, True)):
        small = np.dtype(kind).itemsize < 4
        for linear in (False, True) if not integer or (normalized_floats and small) else (False,):
            settings = {"normalized_floats": normalized_floats, "linear": linear, "modes": ("border",) * 3}
            cases.append(case_of("2d", kind, channels, **settings))
    check(cases, tmp_path)


def test_srgb(tmp_path):
    texels = np.arange(1024, dtype=np.uint8).reshape(1, 16, 16, 4)
    places = np.zeros(256, PLACE)
    places["at"][:, 0], places["at"][:, 1] = np.arange(256) % 16 + 0.5, np.arange(256) // 16 + 0.5
    case = Case("2d", texels, places, normalized_floats=True, srgb=True)
    got = read([case], tmp_path)[0].view(np.float32)
    np.testing.assert_allclose(got, sampled(case, texels), rtol=2e-2 if ON_GPU else 1e-6, atol=1e-3 if ON_GPU else 0)


def test_pitched_memory(tmp_path):
    cases = [
        case_of("2d", kind, channels, resource=2, linear=linear, normalized=True, modes=modes)
        for kind, channels, linear in (("float32", 1, True), ("float32", 2, False), ("uint8", 4, False))
        for modes in (("wrap",) * 3, ("clamp",) * 3, ("border",) * 3)
    ]
    check(cases, tmp_path)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "float32"])
def test_fetch_of_linear_memory(kind, tmp_path):
    """Beyond both ends it is zero, whatever the address mode says."""
    texels = some_texels((1, 1, 100, 2), kind)
    places = np.zeros(180, PLACE)
    places["at"][:, 0] = np.arange(-40, 140)
    places["at"][0, 0], places["at"][1, 0] = -(2**31), 2**30
    want = np.zeros((180, 2))
    cases = []
    for normalized_floats in (False, True):
        case = Case("1d", texels, places, resource=1, operation=1, normalized_floats=normalized_floats, linear=True)
        if not case.floats:
            case.linear = False
        cases.append(case)
    for case, got in zip(cases, read(cases, tmp_path), strict=True):
        want[40:140] = values(case, texels)[0, 0]
        case.linear = False
        compare(case, got, want)


@pytest.mark.parametrize("component", range(4))
def test_gather(component, tmp_path):
    cases = [
        case_of("2d", kind, 4, operation=2, component=component, modes=modes, normalized=modes[0] == "wrap")
        for kind in ("float32", "uint8")
        for modes in (("clamp",) * 3, ("wrap",) * 3)
    ]
    for case, got in zip(cases, read(cases, tmp_path), strict=True):
        at = case.places["at"].astype(np.float64)
        (x0, _), (x1, _) = taps(case, at[:, 0], 13, case.modes[0], True)
        (y0, _), (y1, _) = taps(case, at[:, 1], 7, case.modes[1], True)
        texels = values(case, case.texels)[0, :, :, component]
        compare(case, got, np.stack([texels[y1, x0], texels[y1, x1], texels[y0, x1], texels[y0, x0]], 1))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("linear_levels", [False, True])
def test_levels(linear, linear_levels, tmp_path):
    levels = [some_texels((1, 16 >> k, 16 >> k, 2), "float32", k) for k in range(5)]
    places = some_places("2d", levels[0].shape, True)
    places["level"] = np.random.default_rng(5).integers(-16, 80, len(places)) / 16 + 1 / 64
    case = Case("2d", levels[0], places, ("wrap",) * 3, linear, normalized=True, operation=3, levels=levels)
    case.linear_levels = linear_levels
    got = read([case], tmp_path)[0]
    level = np.clip(places["level"].astype(np.float64), 0, 4)
    first = np.floor(level) if linear_levels else np.floor(level + 0.5)
    weight = np.floor((level - first) * 256 + 0.5) / 256 if linear_levels else 0 * level
    of_level = np.stack([sampled(case, texels) for texels in levels] + [np.zeros((len(places), 4))])
    first, every = first.astype(int), np.arange(len(places))
    want = (1 - weight)[:, None] * of_level[first, every] + weight[:, None] * of_level[first + 1, every]
    compare(case, got, want)


def test_where_the_guide_is_silent(tmp_path):
    """NaN is coordinate 0, infinities lie beyond the edges; a mirror's own edge belongs to the texel behind it."""
    texels = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 8, 1)
    special = [np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 1.0, -1.0, 1.25, 8.0, 7.99]
    places = np.zeros(len(special), PLACE)
    places["at"][:, 0] = special
    want = {
        ("clamp", False): [1, 8, 1, 8, 1, 1, 2, 1, 2, 8, 8],
        ("border", False): [1, 0.25, 0.25, 0.25, 0.25, 1, 2, 0.25, 2, 0.25, 8],
        ("wrap", True): [1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 8],
        ("mirror", True): [1, 1, 1, 1, 1, 1, 8, 8, 6, 1, 1],
    }
    cases = [Case("1d", texels, places, (mode,) * 3, normalized=normalized) for mode, normalized in want]
    for case, got, values in zip(cases, read(cases, tmp_path), want.values(), strict=True):
        assert got[:, 0].view(np.float32).tolist() == values, case.modes[0]

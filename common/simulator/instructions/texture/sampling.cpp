#include "instructions/texture/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "instructions/arithmetic/numbers.h"

namespace warpsim {
namespace {

constexpr double kFarAway = 1e12;  // beyond every texture, and an int64_t

unsigned axes_of(TextureGeometry geometry) {
    switch (geometry) {
        case TextureGeometry::d1:
        case TextureGeometry::a1d:
            return 1;
        case TextureGeometry::d3:
            return 3;
        default:
            return 2;
    }
}

bool is_cube(TextureGeometry geometry) {
    return geometry == TextureGeometry::cube || geometry == TextureGeometry::acube;
}

// Weights have eight bits behind the point, and may be 1.
double weight_of(double fraction) {
    return std::floor(fraction * 256 + 0.5) / 256;
}

template <class T>
T load(const std::byte *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

uint32_t bits_of(float value) {
    return std::bit_cast<uint32_t>(value);
}

// From sRGB's curve to the light itself, by byte.
const std::array<float, 256> &linear_light() {
    static const std::array<float, 256> table = [] {
        std::array<float, 256> made{};
        for (unsigned i = 0; i < 256; ++i) {
            const double c = i / 255.0;
            made[i] = static_cast<float>(c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
        }
        return made;
    }();
    return table;
}

// Of one or two bytes.
uint32_t channel(const TextureObject &object, unsigned index, const std::byte *from) {
    using Kind = TexelFormat::Kind;
    const TexelFormat &format = object.format;
    const bool is_signed = format.kind == Kind::signed_integer || format.kind == Kind::snorm;
    if (format.kind == Kind::floating) return bits_of(f16_to_float(load<uint16_t>(from)));
    const bool byte = format.channel_bytes == 1;
    const int32_t value = is_signed ? byte ? load<int8_t>(from) : load<int16_t>(from)
                                    : static_cast<int32_t>(byte ? load<uint8_t>(from) : load<uint16_t>(from));
    if (!object.returns_floats) return static_cast<uint32_t>(value);
    if (object.srgb && byte && !is_signed && index < 3) return bits_of(linear_light()[static_cast<size_t>(value)]);
    const float greatest = is_signed ? byte ? 127 : 32767 : byte ? 255 : 65535;
    return bits_of(std::max(static_cast<float>(value) / greatest, -1.0f));
}

// A cube's face, and the direction's parts along it: across, down, and out of it.
struct Face {
    unsigned number;
    std::array<double, 3> parts(const std::array<double, 3> &v) const {
        const double x = v[0], y = v[1], z = v[2];
        switch (number) {
            case 0:
                return {-z, -y, x};
            case 1:
                return {z, -y, -x};
            case 2:
                return {x, z, y};
            case 3:
                return {x, -z, -y};
            case 4:
                return {x, -y, z};
            default:
                return {-x, -y, -z};
        }
    }
};

Face face_of(const std::array<double, 3> &v) {
    const double x = std::fabs(v[0]), y = std::fabs(v[1]), z = std::fabs(v[2]);
    const unsigned axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    return {2 * axis + (v[axis] < 0)};
}

}  // namespace

TextureSampler::TextureSampler(const TextureObject &object, TextureGeometry geometry, const AllocationView &memory,
                               bool notes_texels)
    : object_(object), geometry_(geometry), memory_(memory), axes_(axes_of(geometry)), notes_texels_(notes_texels) {}

uint64_t TextureSampler::fault() {
    return std::exchange(fault_, 0);
}

std::vector<uint64_t> TextureSampler::touched() {
    return std::exchange(touched_, {});
}

TextureSampler::Flat TextureSampler::flatten(const TexturePlace &place) const {
    Flat flat{place.at, place.layer, object_.normalized_coordinates};
    for (double &x : flat.at) x = x == x ? x : 0;
    if (!is_cube(geometry_)) return flat;
    const Face face = face_of(flat.at);
    const std::array<double, 3> parts = face.parts(flat.at);
    flat.normalized = true;
    for (unsigned k = 0; k < 2; ++k) {
        const double quotient = parts[k] / parts[2];
        flat.at[k] = quotient == quotient ? (quotient + 1) / 2 : 0;
    }
    flat.layer = 6 * place.layer + face.number;
    return flat;
}

inline TextureSampler::Axis TextureSampler::locate(double x, uint64_t size, AddressMode mode, bool normalized,
                                                   bool filter) const {
    const double n = static_cast<double>(size);
    bool mirrored = false;
    if (normalized) {
        const bool repeats = mode == AddressMode::wrap || mode == AddressMode::mirror;
        if (repeats && !std::isfinite(x)) x = 0;
        const double whole = std::floor(x);
        if (repeats) x -= whole;
        mirrored = mode == AddressMode::mirror && std::fmod(whole, 2) != 0;
        if (mirrored && filter) x = 1 - x;  // without a filter the texel's number is mirrored, below, as a GPU does it
        x *= n;
    } else if (mode == AddressMode::wrap || mode == AddressMode::mirror) {
        mode = AddressMode::clamp;
    }
    if (filter) x -= 0.5;
    x = std::clamp(x, -kFarAway, kFarAway);
    const double whole = std::floor(x), second = filter ? weight_of(x - whole) : 0;
    Axis axis;
    axis.taps = filter ? 2 : 1;
    axis.weight = {1 - second, second};
    const int64_t last = static_cast<int64_t>(size) - 1;
    for (unsigned k = 0; k < axis.taps; ++k) {
        int64_t i = static_cast<int64_t>(whole) + k;
        if (mirrored && !filter) i = last - i;
        if (i < 0 || i > last) {
            const bool before = i < 0;
            switch (mode) {
                case AddressMode::wrap:  // by at most one, now
                    i = before ? last : 0;
                    break;
                case AddressMode::border:
                    i = -1;
                    break;
                default:
                    i = before ? 0 : last;
            }
        }
        axis.texel[k] = i;
    }
    return axis;
}

inline Texel TextureSampler::texel(const Image &image, int64_t x, int64_t y, int64_t z) {
    if (x < 0 || y < 0 || z < 0) return object_.border;
    const TexelFormat &format = object_.format;
    const uint64_t address = image.address + static_cast<uint64_t>(z) * image.slice +
                             static_cast<uint64_t>(y) * image.pitch + static_cast<uint64_t>(x) * format.bytes();
    Texel result{0, 0, 0, object_.returns_floats ? bits_of(1.0f) : 1};
    if (!memory_.contains(address, format.bytes())) {
        fault_ = address;
        return result;
    }
    if (notes_texels_) touched_.push_back(address);
    const std::byte *from = memory_.at(address);
    if (format.channel_bytes == 4) {
        if (format.channels == 1) {
            result[0] = load<uint32_t>(from);
        } else {
            std::memcpy(result.data(), from, format.bytes());
        }
        return result;
    }
    for (unsigned k = 0; k < format.channels; ++k) result[k] = channel(object_, k, from + k * format.channel_bytes);
    return result;
}

Texel TextureSampler::fetch(const TexturePlace &place) {
    const double last = static_cast<double>(object_.levels.size() - 1);
    const Image &image = object_.levels[static_cast<size_t>(std::clamp(place.level, 0.0, last))];
    if (object_.linear_memory) {
        const double x = place.at[0];
        return x >= 0 && x < static_cast<double>(image.width) ? texel(image, static_cast<int64_t>(x), 0, 0) : Texel{};
    }
    Flat flat{place.at, place.layer, false};
    return nearest(image, flat);
}

Texel TextureSampler::nearest(const Image &image, const Flat &flat) {
    const std::array<uint64_t, 3> size{image.width, image.height, image.depth};
    std::array<int64_t, 3> at{0, 0, static_cast<int64_t>(flat.layer)};
    for (unsigned k = 0; k < axes_; ++k)
        at[k] = locate(flat.at[k], size[k], object_.address_mode[k], flat.normalized, false).texel[0];
    return texel(image, at[0], at[1], at[2]);
}

std::array<double, 4> TextureSampler::filtered(const Image &image, const Flat &flat) {
    std::array<double, 4> sum{};
    const std::array<uint64_t, 3> size{image.width, image.height, image.depth};
    std::array<Axis, 3> axis;
    axis[2].texel[0] = static_cast<int64_t>(flat.layer);
    for (unsigned k = 0; k < axes_; ++k)
        axis[k] = locate(flat.at[k], size[k], object_.address_mode[k], flat.normalized, object_.filter);
    // A texture of one dimension lies at the edge of its one row: with a border beyond that edge, too, half of it is
    // seen.
    if (geometry_ == TextureGeometry::d1 && object_.filter && object_.address_mode[1] == AddressMode::border) {
        axis[1].taps = 2;
        axis[1].texel = {-1, 0};
        axis[1].weight = {0.5, 0.5};
    }
    for (unsigned z = 0; z < axis[2].taps; ++z)
        for (unsigned y = 0; y < axis[1].taps; ++y)
            for (unsigned x = 0; x < axis[0].taps; ++x) {
                const Texel t = texel(image, axis[0].texel[x], axis[1].texel[y], axis[2].texel[z]);
                const double weight = axis[0].weight[x] * axis[1].weight[y] * axis[2].weight[z];
                for (unsigned k = 0; k < 4; ++k) sum[k] += weight * double{std::bit_cast<float>(t[k])};
            }
    return sum;
}

double TextureSampler::gradient_level(const TexturePlace &place) const {
    const Image &image = object_.levels[0];
    const std::array<uint64_t, 3> size{image.width, image.height, image.depth};
    double longest = 0;
    for (const auto *gradient : {&place.gradient_x, &place.gradient_y}) {
        std::array<double, 3> step = *gradient;
        if (is_cube(geometry_)) {  // of across/out and down/out
            const Face face = face_of(place.at);
            const std::array<double, 3> v = face.parts(place.at), d = face.parts(*gradient);
            for (unsigned k = 0; k < 2; ++k) step[k] = (d[k] * v[2] - v[k] * d[2]) / (2 * v[2] * v[2]);
        }
        double squares = 0;
        for (unsigned k = 0; k < axes_; ++k) {
            const bool normalized = object_.normalized_coordinates || is_cube(geometry_);
            const double texels = step[k] * (normalized ? static_cast<double>(size[k]) : 1);
            squares += texels * texels;
        }
        longest = std::max(longest, squares);
    }
    return std::log2(longest) / 2;
}

double TextureSampler::level_of(const TexturePlace &place, TextureForm::Selects selects) const {
    if (selects == TextureForm::Selects::first_level) return 0;
    double level = selects == TextureForm::Selects::level ? place.level : gradient_level(place);
    level += double{object_.level_bias};
    level = std::min(std::max(level, double{object_.least_level}), double{object_.greatest_level});
    level = std::min(std::max(level, 0.0), static_cast<double>(object_.levels.size() - 1));
    return level == level ? level : 0;
}

Texel TextureSampler::sample(const TexturePlace &place, TextureForm::Selects selects) {
    const Flat flat = flatten(place);
    const double level = level_of(place, selects);
    if (!object_.filter && !object_.filter_levels)
        return nearest(object_.levels[static_cast<size_t>(std::floor(level + 0.5))], flat);
    const double first = object_.filter_levels ? std::floor(level) : std::floor(level + 0.5);
    const double second = object_.filter_levels ? weight_of(level - first) : 0;
    std::array<double, 4> sum = filtered(object_.levels[static_cast<size_t>(first)], flat);
    if (second > 0) {
        const auto other = filtered(object_.levels[static_cast<size_t>(first) + 1], flat);
        for (unsigned k = 0; k < 4; ++k) sum[k] = (1 - second) * sum[k] + second * other[k];
    }
    Texel result;
    for (unsigned k = 0; k < 4; ++k) result[k] = bits_of(canonical(static_cast<float>(sum[k])));
    return result;
}

Texel TextureSampler::gather(const TexturePlace &place, unsigned component) {
    const Image &image = object_.levels[0];
    const Flat flat = flatten(place);
    const Axis x = locate(flat.at[0], image.width, object_.address_mode[0], flat.normalized, true);
    const Axis y = locate(flat.at[1], image.height, object_.address_mode[1], flat.normalized, true);
    // Counter-clockwise, from the lower left.
    constexpr unsigned kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    Texel result;
    for (unsigned k = 0; k < 4; ++k)
        result[k] = texel(image, x.texel[kOrder[k][0]], y.texel[kOrder[k][1]], 0)[component];
    return result;
}

}  // namespace warpsim

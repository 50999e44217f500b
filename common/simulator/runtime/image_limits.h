// The largest textures and surfaces, the same for all profiles.
#pragma once

namespace warpsim::rt {

inline constexpr int kImage1D = 131072, kImage1DMipmap = 32768, kImage1DLayered = 32768, kLayers = 2048;
inline constexpr int kImage2DWidth = 131072, kImage2DHeight = 65536, kImage2DSmall = 32768;  // mipmap, gather, layered
inline constexpr int kPitchedWidth = 131072, kPitchedHeight = 65000, kPitchedBytes = 2097120;
inline constexpr int kImage3D = 16384, kCubemap = 32768, kCubemapLayers = 2046;
inline constexpr int kLinearTexels = 1 << 28;
inline constexpr int kSurface1D = 32768;
inline constexpr int kTextureAlignment = 512, kTexturePitchAlignment = 32;

}  // namespace warpsim::rt

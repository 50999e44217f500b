// Which unknown number an undefined value is. x + a - x is a, whatever x is: a scan that takes its input off its sums
// has nothing undefined in what comes before the unknown. So an origin has, beside the id of Definedness, a fingerprint
// of the sum of unknowns that the value is, up to something that is defined: 0 where it is no such sum. Sums and
// differences of values are sums and differences of fingerprints, and a value whose fingerprint comes to 0 is defined.
// (Two sums may have the same one by chance; then a mistake is not reported.)
#pragma once

#include <cstdint>

namespace warpsim {

inline constexpr unsigned kOriginBits = 20;
inline constexpr uint32_t kOriginMask = (1u << kOriginBits) - 1, kMostOrigins = kOriginMask;
inline constexpr uint32_t kFingerprintMask = ~0u >> kOriginBits;

// Of an origin as registers and memory hold it: the id of Definedness.
inline uint32_t origin_id(uint32_t origin) {
    return origin & kOriginMask;
}
inline uint32_t fingerprint(uint32_t origin) {
    return origin >> kOriginBits;
}
inline uint32_t with_fingerprint(uint32_t id, uint32_t print) {
    return id | print << kOriginBits;
}
// An unknown of its own: what was read at that place. Its fingerprint is not 0.
inline uint32_t unknown(uint32_t id, uint64_t place) {
    uint64_t mixed = (id + 0x9e3779b97f4a7c15ull * (place + 1)) * 0xbf58476d1ce4e5b9ull;
    mixed ^= mixed >> 31;
    return with_fingerprint(id, uint32_t(mixed % kFingerprintMask) + 1);
}

}  // namespace warpsim

// What an op's fields mean, by format: lowering writes them so, handlers read them so.
//
// - arithmetic: dst result, a b c sources, extra the fourth source's slot
// - lop3: as arithmetic, imm the truth table; with a predicate extra is 1 for .and, 0 for .or, list p and q
// - setp, set: dst p or the result, a b sources, c the Boolean operand, imm q (-1: none), extra CompareOutput
// - SIMD video: as arithmetic, imm VideoForm
// - cvt: dst result, a b sources, imm Conversion
// - cvt.pack: dst result, a b sources (signed), c the low bits, extra PackForm
// - mov: dst result, a source; packing and unpacking: list the elements
// - prmt with a constant: dst result, a b sources, imm the selector
// - cvta, isspacep: dst result, a address, imm the window
// - ld: dst value, a base, imm offset, extra access bits; more than one value: list; of used bytes: c their mask
// - st: b value, a base, imm offset, extra access bits; more than one value: list
// - atom, red: dst old value, b operand, c what cas stores, a base, imm offset, extra access bits
// - discard, applypriority: b a number of bytes, a base, imm offset, extra access bits
// - cp.async: a base in shared memory, imm offset, b cp-size (a number), list CopySource, extra access bits
// - cp.async.wait_*: imm groups that may be in flight, b 1 for wait_all
// - mbarrier: a base in shared memory, imm offset, b count, bytes or the phase waited for, dst state or predicate,
// extra
//   MbarrierForm and access bits
// - cp.async.mbarrier.arrive: as mbarrier
// - bulk copies: a base of the shared side, imm offset, b size, list BulkSlot, extra BulkForm; wait_group: as
//   cp.async.wait_*, b 1 for .read
// - tensor copies: a base of the shared side, imm offset, list TensorSlot, extra TensorForm
// - shfl: dst result, imm the pair's slot, a source, b lane, c clamp, member membermask, extra Brings and mode
// - vote, match, redux, elect: as shfl, without b and c
// - mma: list D, A, B, C, imm MmaFragments, extra kMmaSaturate
// - wgmma.mma_async: list D, then A where it is in registers, a and b descriptors, c scale-d, imm WgmmaForm
// - wgmma.wait_group, setmaxnreg: imm the number
// - before an instruction that may touch registers of a wgmma: target which one, imm index into Program::notes, extra
//   WgmmaTouch
// - ldmatrix, stmatrix: a base, imm offset, list the fragment, extra matrix bits
// - wmma.load, wmma.store: a base, b stride, imm offset, list the fragment, extra access bits and kWmmaMatrixShift
// - tex, tld4: a handle, list TextureSlot, imm slot of the predicate that says whether the texels are there (-1: none),
//   extra TextureForm
// - txq, suq: dst result, a handle, b level, imm ImageQuery
// - suld, sust: a handle, list SurfaceSlot and the data, extra SurfaceForm
// - barriers: a number, b threads, extra BarrierForm; of bar.red c source, dst result
// - barrier.cluster: extra kCluster bits
// - mapa: dst result, a base, imm offset, b rank, c bytes of the result (a number), extra access bits; getctarank: dst
//   result, a base, imm offset, extra access bits
// - call: a pointer, b frame base, target function, list places of arguments and results, extra number of results
// - arguments in registers: dst or a value, b frame base, imm offset, extra bytes
// - low bytes of a register: dst result, a source, imm bytes of a lane of a, extra bytes of a lane of dst
// - address in the frame: dst result, a frame base, imm offset
// - clock: dst result, imm Special
//
// dst, a, b, c, guard, member and pairs are slots (kNoSlot: there is none) unless a line says that they hold a number
// that lowering knew.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/op.h"

namespace warpsim {

// A small struct as the bits of Op::extra or Op::imm.
template <class Bits, class Form>
Bits pack(const Form &form) {
    static_assert(std::is_trivially_copyable_v<Form> && sizeof(Form) <= sizeof(Bits));
    Bits bits = 0;
    std::memcpy(&bits, &form, sizeof form);
    return bits;
}
template <class Form, class Bits>
Form unpack(Bits bits) {
    static_assert(std::is_trivially_copyable_v<Form> && sizeof(Form) <= sizeof(Bits));
    Form form;
    std::memcpy(static_cast<void *>(&form), &bits, sizeof form);
    return form;
}

// ---- memory ----

enum class MemorySpace : uint8_t { generic, global, shared, local, constant, param };

// Access bits: extra of everything that has an address in a and imm.
inline constexpr uint32_t kBase32 = 1;   // the base has 32-bit lanes
inline constexpr uint32_t kStrong = 2;   // volatile, relaxed, acquire, release
inline constexpr uint32_t kAcquire = 4;  // says so itself
inline constexpr uint32_t kRelease = 8;
inline constexpr uint32_t kOwnOrder = 16;             // atomics: carries .relaxed, .acquire, .release or .acq_rel
inline constexpr uint32_t kTeamScope = 1u << 6;       // has .cta or .cluster: other blocks need not see its order
inline constexpr uint32_t kSystemScope = 1u << 7;     // volatile or has .sys: other devices see its order, too
inline constexpr uint32_t kSourceBase32 = 1u << 5;    // cp.async: the source's base has 32-bit lanes
inline constexpr uint32_t kNoncoherent = 1u << 12;    // ld.global.nc
inline constexpr uint32_t kLockstep = 1u << 13;       // volatile, and not in a loop that waits for a value
inline constexpr uint32_t kRemoteGeneric = 1u << 31;  // ops that exec_remote runs, mapa, getctarank: a generic address
inline constexpr uint32_t kSpaceShift = 8;            // atomics: MemorySpace
inline constexpr uint32_t kAlignmentShift = 16;       // atomics: log2 of what the address must be a multiple of
static_assert(uint32_t(MemorySpace::param) <= 0xf &&
              (kTeamScope | kSystemScope | kSourceBase32 | kOwnOrder) < 1u << kSpaceShift);
inline MemorySpace space_of(const Op &op) {
    return MemorySpace(op.extra >> kSpaceShift & 0xf);
}

// cp.async's list.
enum CopySource : uint32_t {
    kCopyBase,       // slot of the global address
    kCopyOffsetLow,  // what is added to it
    kCopyOffsetHigh,
    kCopySize,    // slot of src-size; kNoSlot: all
    kCopyIgnore,  // predicate slot of ignore-src; kNoSlot: none
    kCopyListLength,
};

// barrier.cluster
inline constexpr uint32_t kClusterAligned = 1;
inline constexpr uint32_t kClusterRelaxed = 2;

// What is done to an mbarrier, from kMbarrierShift on in extra, behind the access bits.
enum class MbarrierForm : uint8_t { init, inval, arrive, drop, expect, complete, test, copies_arrive };
inline constexpr unsigned kMbarrierShift = 8;
inline constexpr uint32_t kMbarrierExpects = 1u << 12;      // arrive.expect_tx
inline constexpr uint32_t kMbarrierNoComplete = 1u << 13;   // arrive.noComplete
inline constexpr uint32_t kMbarrierParity = 1u << 14;       // waits: by parity, else by state
inline constexpr uint32_t kMbarrierMaySuspend = 1u << 15;   // try_wait
inline constexpr uint32_t kMbarrierNoIncrement = 1u << 16;  // cp.async.mbarrier.arrive.noinc
inline constexpr uint32_t kMbarrierRelaxed = 1u << 17;      // neither releases nor acquires
inline constexpr uint32_t kMbarrierGeneric = 1u << 18;      // a generic address
inline constexpr uint32_t kMbarrierUnchecked = 1u << 19;    // waits: nothing reads the result
inline MbarrierForm mbarrier_form(uint32_t extra) {
    return MbarrierForm(extra >> kMbarrierShift & 0xf);
}

// Bulk copies.
enum class BulkKind : uint8_t { load, store, reduce, prefetch, peer };
enum class BulkOperation : uint8_t { none, add, min, max, inc, dec, and_, or_, xor_ };
struct BulkForm {
    BulkKind kind = BulkKind::load;
    BulkOperation operation = BulkOperation::none;
    ptx::Type type = ptx::Type::none;
    bool generic_shared : 1 = false, generic_mbarrier : 1 = false;
    bool shared_base32 : 1 = false, global_base32 : 1 = false, mbarrier_base32 : 1 = false;
};
static_assert(sizeof(BulkForm) <= sizeof(Op::extra));
enum BulkSlot : uint32_t {
    kBulkGlobal,  // slot of the global address (of copies between blocks the source in shared memory), and what is
                  // added to it
    kBulkGlobalLow,
    kBulkGlobalHigh,
    kBulkMbarrier,  // slot of the mbarrier's address, and what is added to it
    kBulkMbarrierOffset,
    kBulkListLength,  // behind it, of multicast copies: slot of the mask
};

// Copies of boxes of tensors.
struct TensorForm {
    BulkKind kind = BulkKind::load;
    BulkOperation operation = BulkOperation::none;
    uint8_t dimensions = 1;
    bool shared_base32 : 1 = false, map_base32 : 1 = false, mbarrier_base32 : 1 = false;
};
static_assert(sizeof(TensorForm) <= sizeof(Op::extra));
enum TensorSlot : uint32_t {
    kTensorMap,  // slot of the map's generic address, and what is added to it
    kTensorMapLow,
    kTensorMapHigh,
    kTensorMbarrier,  // slot of the mbarrier's address, and what is added to it
    kTensorMbarrierOffset,
    kTensorCoordinates,                          // five slots, those that there are
    kTensorListLength = kTensorCoordinates + 5,  // behind it, of multicast copies: slot of the mask
};

// ---- conversions and comparisons ----

enum class Round : uint8_t { nearest_even, nearest_away, zero, down, up };

struct Conversion {
    ptx::Type to = ptx::Type::none, from = ptx::Type::none;  // of one element, never a packed type
    uint8_t to_bytes = 0, from_bytes = 0;                    // lane widths of the registers (or of a packed element)
    Round round = Round::nearest_even;
    bool integral : 1 = false;  // .rni .rzi .rmi .rpi: round to an integer first
    bool ftz : 1 = false;
    bool sat : 1 = false;
    bool satfinite : 1 = false;
    bool relu : 1 = false;
    bool two_sources : 1 = false;  // a packed result from a (upper half) and b (lower half)
};
static_assert(sizeof(Conversion) <= sizeof(Op::imm));

struct PackForm {
    uint8_t bits = 8;  // of each of the two parts
    bool is_signed = false;
};
static_assert(sizeof(PackForm) <= sizeof(Op::extra));

// What becomes of a comparison's result.
struct CompareOutput {
    enum class Combine : uint8_t { none, land, lor, lxor } combine = Combine::none;  // with predicate slot c
    bool negate_c = false;
    // predicates: dst = p, imm = slot of q (-1: none). ones: all bits set. Else the number 1 of the type.
    enum class Kind : uint8_t { predicates, ones, f32, f16, bf16 } kind = Kind::predicates;
    uint8_t bytes = 4;  // of a lane of dst, where that is no predicate
};
static_assert(sizeof(CompareOutput) <= sizeof(Op::extra));

// ---- warps ----

// How an op's source `a` is gathered from several places: the low bits of extra of every op with a membermask.
enum class Brings : uint8_t { nothing = 0, predicate = 1, word = 4, double_word = 8 };
inline constexpr uint32_t kBringsMask = 0xf;

// One of shfl's modes, what vote and redux compute: the next four bits.
enum class Shuffle : uint8_t { up, down, butterfly, index };
enum class Vote : uint8_t { all, any, uniform, ballot };
enum class Reduce : uint8_t { add, min, max, and_, or_, xor_ };
enum class Match : uint8_t { any, all };
inline constexpr unsigned kModeShift = 4;
inline constexpr uint32_t kReduceSigned = 1u << 8, kReduceFloat = 1u << 9, kReduceAbs = 1u << 10, kReduceNan = 1u << 11;
static_assert(uint32_t(Brings::double_word) <= kBringsMask && kBringsMask < 1u << kModeShift);
static_assert(uint32_t(Reduce::xor_) << kModeShift < kReduceSigned);

// ---- tensor ----

// Registers of each fragment where they are laid out as instructions/mma/mma.h says, else 0.
struct MmaFragments {
    uint8_t d = 0, a = 0, b = 0, c = 0;
};
inline constexpr uint32_t kMmaSaturate = 1;  // .satfinite of integers
struct WgmmaForm {
    ptx::Type d = ptx::Type::none, a = ptx::Type::none, b = ptx::Type::none;
    uint8_t n8 = 1;                                       // n / 8
    bool a_in_registers : 1 = false;                      // else a descriptor
    bool a_mn_major : 1 = false, b_mn_major : 1 = false;  // else K-major
    bool negate_a : 1 = false, negate_b : 1 = false;
    bool saturate : 1 = false;
};
static_assert(sizeof(WgmmaForm) <= sizeof(Op::imm));
enum class WgmmaTouch : uint32_t { in_flight, unfenced };
inline constexpr uint32_t kMatrixTranspose = 1, kMatrixGeneric = 2, kMatrixAddress64 = 4;  // ldmatrix, stmatrix

// ---- textures and surfaces ----

// 1d, 2d, 3d; layers of 1d and of 2d; a cube's faces, and layers of cubes.
enum class TextureGeometry : uint8_t { d1, d2, d3, a1d, a2d, cube, acube };

struct TextureForm {
    TextureGeometry geometry = TextureGeometry::d1;
    enum class Selects : uint8_t { first_level, level, level_by_gradient, four_texels } selects = Selects::first_level;
    bool integer_coordinates = false;
    uint8_t component = 0;  // four_texels: of each
};
static_assert(sizeof(TextureForm) <= sizeof(Op::extra));

// The list of tex and tld4. kNoSlot for what the form does not have; all lanes are 32 bits wide.
enum TextureSlot : uint32_t {
    kTexels = 0,       // four results
    kCoordinates = 4,  // three
    kLayer = 7,
    kLevel = 8,
    kGradientX = 9,   // three
    kGradientY = 12,  // three
    kTextureSlots = 15,
};

struct SurfaceForm {
    TextureGeometry geometry = TextureGeometry::d1;  // no cubes
    enum class OutOfRange : uint8_t { trap, clamp, zero } out_of_range = OutOfRange::trap;
    uint8_t bytes = 4;  // of an element: 1 and 2 in 16-bit registers
    uint8_t count = 1;
};
static_assert(sizeof(SurfaceForm) <= sizeof(Op::extra));

// The list of suld and sust: coordinates of 32 bits, the first in bytes.
enum SurfaceSlot : uint32_t { kSurfaceCoordinates = 0, kSurfaceLayer = 3, kSurfaceData = 4 };

enum class ImageQuery : uint8_t { width, height, depth, array_size, levels, normalized_coordinates };

// ---- control ----

enum class BarrierKind : uint8_t { sync, arrive, red_popc, red_and, red_or };
struct BarrierForm {
    BarrierKind kind = BarrierKind::sync;
    bool aligned = true;  // all lanes of a warp must execute the same instruction
};
static_assert(sizeof(BarrierForm) <= sizeof(Op::extra));

}  // namespace warpsim

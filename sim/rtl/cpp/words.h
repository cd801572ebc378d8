// Bits of values wider than a machine word, kept as bytes with the lowest first.
//
// Values of up to 128 bits are integers, always reduced to their width. Wider ones are arrays of
// bytes, with eight more behind them so that any eight bytes may be read at once.

#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vitral {

typedef unsigned __int128 u128;
typedef __int128 s128;

constexpr unsigned kSlack = 8;

template <unsigned kBits>
constexpr uint64_t mask64 = kBits >= 64 ? ~0ull : (1ull << (kBits % 64)) - 1;

// Bits of an array, at most 64.
template <unsigned kLow, unsigned kBits>
inline uint64_t get(const uint8_t* from) {
    uint64_t word;
    std::memcpy(&word, from + kLow / 8, 8);
    word >>= kLow % 8;
    if constexpr (kLow % 8 + kBits > 64)
        word |= static_cast<uint64_t>(from[kLow / 8 + 8]) << (64 - kLow % 8);
    return word & mask64<kBits>;
}

template <unsigned kLow, unsigned kBits>
inline u128 get128(const uint8_t* from) {
    if constexpr (kLow % 8 == 0 && kBits == 128) {
        u128 word;
        std::memcpy(&word, from + kLow / 8, 16);
        return word;
    }
    return get<kLow, 64>(from) | static_cast<u128>(get<kLow + 64, kBits - 64>(from)) << 64;
}

// Sets bits of an array, at most 64; `value` has no bits above them.
template <unsigned kLow, unsigned kBits>
inline void put(uint8_t* to, uint64_t value) {
    if constexpr (kLow % 8 == 0 && kBits % 8 == 0) {
        std::memcpy(to + kLow / 8, &value, kBits / 8);
    } else if constexpr (kLow % 8 + kBits > 64) {
        put<kLow, 32>(to, value & mask64<32>);
        put<kLow + 32, kBits - 32>(to, value >> 32);
    } else {
        uint64_t word;
        std::memcpy(&word, to + kLow / 8, 8);
        word = (word & ~(mask64<kBits> << kLow % 8)) | value << kLow % 8;
        std::memcpy(to + kLow / 8, &word, 8);
    }
}

template <unsigned kLow, unsigned kBits>
inline void put128(uint8_t* to, u128 value) {
    put<kLow, 64>(to, static_cast<uint64_t>(value));
    put<kLow + 64, kBits - 64>(to, static_cast<uint64_t>(value >> 64));
}

// 32 bytes that may be anywhere; compilers make of them what the processor has.
typedef uint64_t Lanes __attribute__((vector_size(32), aligned(1), may_alias));

inline bool any(const Lanes& lanes) {
#if defined(__AVX__)
    return !_mm256_testz_si256((__m256i)lanes, (__m256i)lanes);
#else
    return lanes[0] | lanes[1] | lanes[2] | lanes[3];
#endif
}

// Copies bytes; says whether that changed any.
template <unsigned kBytes>
inline bool renew(void* __restrict to, const void* __restrict from) {
    uint8_t* const old = static_cast<uint8_t*>(to);
    const uint8_t* const now = static_cast<const uint8_t*>(from);
    constexpr unsigned kWhole = kBytes & ~31u;
    uint64_t changes = 0;
    for (unsigned i = kWhole; i + 8 <= kBytes; i += 8) {
        uint64_t before, word;
        std::memcpy(&before, old + i, 8);
        std::memcpy(&word, now + i, 8);
        std::memcpy(old + i, &word, 8);
        changes |= before ^ word;
    }
    for (unsigned i = kBytes & ~7u; i < kBytes; ++i) {
        changes |= old[i] ^ now[i];
        old[i] = now[i];
    }
    if constexpr (kWhole > 0) {
        Lanes all = {static_cast<uint64_t>(changes)};
#pragma GCC unroll 16
        for (unsigned i = 0; i < kWhole; i += 32) {
            const Lanes word = *reinterpret_cast<const Lanes*>(now + i);
            all |= *reinterpret_cast<const Lanes*>(old + i) ^ word;
            *reinterpret_cast<Lanes*>(old + i) = word;
        }
        return any(all);
    }
    return changes;
}

// Words of 32 bits, as many as are wanted and zeros behind them.
struct alignas(32) Words {
    uint32_t word[32];
};

// Whether any of the first words, of those bits that are in `care`, is not as `wanted`.
template <unsigned kWords>
inline bool differ(const void* now, const Words& care, const Words& wanted) {
    static_assert(kWords <= 32);
    Lanes all = {};
    const uint8_t* const from = static_cast<const uint8_t*>(now);
#pragma GCC unroll 4
    for (unsigned i = 0; i < kWords; i += 8) {
        const Lanes mask = *reinterpret_cast<const Lanes*>(&care.word[i]);
        const Lanes usual = *reinterpret_cast<const Lanes*>(&wanted.word[i]);
        all |= (*reinterpret_cast<const Lanes*>(from + 4 * i) & mask) ^ usual;
    }
    return any(all);
}

// Copies whole rows; compilers call a function for large ones.
template <unsigned kBytes>
inline void move(void* __restrict to, const void* __restrict from) {
    uint8_t* const target = static_cast<uint8_t*>(to);
    const uint8_t* const source = static_cast<const uint8_t*>(from);
    constexpr unsigned kWhole = kBytes & ~31u;
#pragma GCC unroll 16
    for (unsigned i = 0; i < kWhole; i += 32)
        *reinterpret_cast<Lanes*>(target + i) = *reinterpret_cast<const Lanes*>(source + i);
    if constexpr (kBytes > kWhole) std::memcpy(target + kWhole, source + kWhole, kBytes - kWhole);
}

// Copies bits from array to array.
template <unsigned kTo, unsigned kFrom, unsigned kBits>
inline void copy(uint8_t* to, const uint8_t* from) {
    if constexpr (kTo % 8 == 0 && kFrom % 8 == 0 && kBits % 8 == 0) {
        move<kBits / 8>(to + kTo / 8, from + kFrom / 8);
    } else if constexpr (kBits <= 64) {
        put<kTo, kBits>(to, get<kFrom, kBits>(from));
    } else {
        put<kTo, 64>(to, get<kFrom, 64>(from));
        copy<kTo + 64, kFrom + 64, kBits - 64>(to, from);
    }
}

// A value as a signed one of `kBits` bits.
template <unsigned kBits>
inline int64_t sext(uint64_t value) {
    return static_cast<int64_t>(value << (64 - kBits)) >> (64 - kBits);
}

template <unsigned kBits>
inline s128 sext128(u128 value) {
    return static_cast<s128>(value << (128 - kBits)) >> (128 - kBits);
}

// `to` = the lowest `bits` (whole bytes) of an array of `size` bytes shifted right.
inline void shift_right(uint8_t* to, unsigned bits, const uint8_t* from, unsigned size,
                        uint64_t amount) {
    const unsigned bytes = bits / 8, bit = amount % 8;
    const uint64_t first = amount / 8;
    for (unsigned i = 0; i < bytes; ++i) {
        const unsigned low = first + i < size ? from[first + i] : 0;
        const unsigned high = first + i + 1 < size ? from[first + i + 1] : 0;
        to[i] = static_cast<uint8_t>((low | high << 8) >> bit);
    }
}

// Sum of the products of signed bytes.
template <unsigned kCount>
inline int32_t dot(const uint8_t* left, const uint8_t* right) {
    int32_t total = 0;
    unsigned i = 0;
#if defined(__AVX2__)
    if (kCount >= 16) {  // half of what compilers make of the loop below
        __m256i sums = _mm256_setzero_si256();
        for (; i + 16 <= kCount; i += 16) {
            const auto* const l = reinterpret_cast<const __m128i*>(left + i);
            const auto* const r = reinterpret_cast<const __m128i*>(right + i);
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(
                _mm256_cvtepi8_epi16(_mm_loadu_si128(l)), _mm256_cvtepi8_epi16(_mm_loadu_si128(r))));
        }
        __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
        total = _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
    }
#endif
    for (; i < kCount; ++i)
        total += static_cast<int8_t>(left[i]) * static_cast<int8_t>(right[i]);
    return total;
}

}  // namespace vitral

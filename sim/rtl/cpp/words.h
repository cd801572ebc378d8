// Bits of values wider than a machine word, kept as bytes with the lowest first.
//
// Values of up to 128 bits are integers, always reduced to their width. Wider ones are arrays of
// bytes, with eight more behind them so that any eight bytes may be read at once.

#pragma once

#include <cstdint>
#include <cstring>

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

// Copies bits from array to array.
template <unsigned kTo, unsigned kFrom, unsigned kBits>
inline void copy(uint8_t* to, const uint8_t* from) {
    if constexpr (kTo % 8 == 0 && kFrom % 8 == 0 && kBits % 8 == 0) {
        std::memcpy(to + kTo / 8, from + kFrom / 8, kBits / 8);
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
    for (unsigned i = 0; i < kCount; ++i)
        total += static_cast<int8_t>(left[i]) * static_cast<int8_t>(right[i]);
    return total;
}

}  // namespace vitral

// The two LZ4 functions that Verilator's FST writer calls, for machines without the LZ4 headers.
// The output is a valid LZ4 block of literals only: readable by every decoder, not smaller.
// Format: LZ4 block format description (token, length bytes, literals).
#pragma once
#include <cstring>

static inline int LZ4_compressBound(int size) { return size + size / 255 + 16; }

static inline int LZ4_compress_default(const char* source, char* target, int size, int capacity) {
    if (capacity < LZ4_compressBound(size)) return 0;
    char* out = target;
    *out++ = static_cast<char>((size < 15 ? size : 15) << 4);
    if (size >= 15) {
        int rest = size - 15;
        for (; rest >= 255; rest -= 255) *out++ = static_cast<char>(255);
        *out++ = static_cast<char>(rest);
    }
    std::memcpy(out, source, size);
    return static_cast<int>(out - target) + size;
}

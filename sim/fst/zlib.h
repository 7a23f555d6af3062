// The part of zlib that Verilator's FST writer calls, for machines without the zlib headers.
// The output is a valid zlib stream (RFC 1950) of stored blocks (RFC 1951, 3.2.4): readable by every decoder, not smaller.
#pragma once
#include <cstring>

typedef unsigned long uLong;
typedef unsigned long uLongf;
typedef unsigned char Bytef;
#define Z_OK 0
#define Z_BUF_ERROR (-5)

static inline uLong compressBound(uLong size) { return size + (size / 65535 + 1) * 5 + 6; }

static inline int compress2(Bytef* target, uLongf* target_size, const Bytef* source, uLong size, int) {
    if (*target_size < compressBound(size)) return Z_BUF_ERROR;
    Bytef* out = target;
    *out++ = 0x78;
    *out++ = 0x01;
    uLong position = 0;
    do {
        const uLong rest = size - position;
        const unsigned length = rest > 65535 ? 65535u : static_cast<unsigned>(rest);
        *out++ = position + length == size;
        *out++ = length & 255;
        *out++ = length >> 8;
        *out++ = ~length & 255;
        *out++ = (~length >> 8) & 255;
        std::memcpy(out, source + position, length);
        out += length;
        position += length;
    } while (position < size);
    uLong low = 1, high = 0;
    for (uLong i = 0; i < size; ++i) {
        low = (low + source[i]) % 65521;
        high = (high + low) % 65521;
    }
    *out++ = high >> 8 & 255;
    *out++ = high & 255;
    *out++ = low >> 8 & 255;
    *out++ = low & 255;
    *target_size = out - target;
    return Z_OK;
}

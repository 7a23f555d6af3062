// Runs a program of issues through the vector or the scalar engine, with memories in C++.
//
// Command: bench INPUT OUTPUT.  Macros: VECTOR (1: two readers, 0: scalar engine), PARTITIONS, SBUF_BYTES, PSUM_BYTES
// (of a partition), ISSUE_BYTES.  Both files are described in `lane_bench.py`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "Vlanes.h"
#include "verilated.h"

// Verilator writes the double underscore of a path as ___05F.
static constexpr int P = PARTITIONS;

struct Header {
    uint32_t issues, cycle_limit, issue_gap, deny_read, deny_write, late, seed;  // deny: of 256
};
struct Span {
    uint32_t space, low, high;
};
struct Entry {
    uint8_t issue[ISSUE_BYTES];
    Span spoil[2];  // overwritten after read_done
    Span keep;      // written to the output at complete
};
struct Event {
    uint32_t kind, cycle;
};
enum Kind { ISSUE, READ_DONE, COMPLETE };

static uint8_t sbuf[P][SBUF_BYTES], psum[P][PSUM_BYTES];
static uint64_t state;
static bool late;

static bool chance(uint32_t of256) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t(state >> 33) & 255) < of256;
}

static uint8_t* row(uint32_t space, int p) { return space == 1 ? sbuf[p] : psum[p]; }

// A read port: random refusals, data two cycles after the request was taken.  `late`: the memory is read when the data
// leaves it, which punishes an early read_done; else when the request is taken.
template <int BYTES> struct ReadPort {
    uint32_t space;
    long word[2] = {-1, -1};
    uint8_t early[2][P][BYTES];
    template <class Valid, class Data> void drive(Valid& valid, Data& data) {
        valid = word[1] >= 0;
        uint8_t* lanes = reinterpret_cast<uint8_t*>(&data);
        for (int p = 0; p < P; p++) {
            if (word[1] < 0) memset(lanes + BYTES * p, 0xEE, BYTES);
            else if (late) memcpy(lanes + BYTES * p, row(space, p) + BYTES * word[1], BYTES);
            else memcpy(lanes + BYTES * p, early[1][p], BYTES);
        }
    }
    void step(bool taken, uint32_t request) {
        word[1] = word[0];
        memcpy(early[1], early[0], sizeof early[0]);
        word[0] = taken ? long(request) : -1;
        for (int p = 0; p < P && taken; p++) memcpy(early[0][p], row(space, p) + BYTES * request, BYTES);
    }
};

// Fields of a write, packed from the low end as in `wide_write_layout`.
static uint64_t bits(const uint8_t* from, int low, int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; i++) value |= uint64_t(from[(low + i) / 8] >> ((low + i) % 8) & 1) << i;
    return value;
}

template <int BYTES, class Data> void write(uint32_t space, const Data& payload, int word_bits) {
    const uint8_t* from = reinterpret_cast<const uint8_t*>(&payload);
    uint32_t word = bits(from, 0, word_bits);
    uint64_t partitions = bits(from, word_bits, P), mask = bits(from, word_bits + P, BYTES);
    for (int p = 0; p < P; p++)
        for (int b = 0; b < BYTES; b++)
            if (partitions >> p & mask >> b & 1)
                row(space, p)[BYTES * word + b] = bits(from, word_bits + P + BYTES + 8 * (BYTES * p + b), 8);
}

static int log2_of(int value) {
    int n = 0;
    while (1 << n < value) n++;
    return n;
}

static void read_exactly(void* to, size_t bytes, FILE* file) {
    if (fread(to, 1, bytes, file) != bytes) { fprintf(stderr, "input too short\n"); exit(2); }
}

#define READ(PORT, NAME) PORT.step(top.NAME##___05Freq___05Fvalid && top.NAME##___05Freq___05Fready, top.NAME##___05Freq___05Fpayload)
#define DRIVE(PORT, NAME) do { \
        PORT.drive(top.NAME##___05Fvalid, top.NAME##___05Fdata); \
        top.NAME##___05Freq___05Fready = !chance(header.deny_read); \
    } while (0)

int main(int, char** argv) {
    FILE* input = fopen(argv[1], "rb");
    if (!input) { perror(argv[1]); return 2; }
    Header header;
    read_exactly(&header, sizeof header, input);
    std::vector<Entry> entries(header.issues);
    read_exactly(entries.data(), sizeof(Entry) * header.issues, input);
    read_exactly(sbuf, sizeof sbuf, input);
    read_exactly(psum, sizeof psum, input);
    fclose(input);
    state = header.seed * 0x9E3779B97F4A7C15ull + 1;
    late = header.late;

    VerilatedContext context;
    Vlanes top{&context};
    top.rst = 1;
    top.clk = 0; top.eval(); top.clk = 1; top.eval();
    top.rst = 0;

    std::vector<Event> events;
    std::vector<uint8_t> kept;
    ReadPort<16> s0{1}, s1{1};
    ReadPort<4> p0{2}, p1{2};
    const int sbuf_bits = log2_of(SBUF_BYTES / 16), psum_bits = log2_of(PSUM_BYTES / 4);
    size_t issued = 0, reads = 0, completes = 0;
    long next_issue = 0;
    // Some cycles more at the end: nothing may happen in them.
    long end = -1;
    for (long cycle = 0; cycle < long(header.cycle_limit) && cycle != end; cycle++) {
#if VECTOR
        DRIVE(s0, src0_sbuf); DRIVE(s1, src1_sbuf); DRIVE(p0, src0_psum); DRIVE(p1, src1_psum);
#else
        DRIVE(s0, src_sbuf); DRIVE(p0, src_psum);
#endif
        top.dst_sbuf___05Fready = !chance(header.deny_write);
        top.dst_psum___05Fready = !chance(header.deny_write);
        bool offer = issued < entries.size() && cycle >= next_issue;
        top.engine___05Fissue___05Fvalid = offer;
        if (offer) memcpy(&top.engine___05Fissue___05Fpayload, entries[issued].issue, ISSUE_BYTES);
        else memset(&top.engine___05Fissue___05Fpayload, 0xFF, ISSUE_BYTES);
        top.clk = 0; top.eval();

        if (offer && top.engine___05Fissue___05Fready) {
            events.push_back({ISSUE, uint32_t(cycle)});
            issued++;
            next_issue = cycle + 1 + header.issue_gap;
        }
        if (top.engine___05Fread_done) {
            events.push_back({READ_DONE, uint32_t(cycle)});
            if (reads >= issued) { fprintf(stderr, "read_done without instruction\n"); return 3; }
            for (const Span& spoil : entries[reads].spoil)
                for (int p = 0; p < P && spoil.space; p++) memset(row(spoil.space, p) + spoil.low, 0xA5, spoil.high - spoil.low);
            reads++;
        }
        if (top.engine___05Fcomplete) {
            events.push_back({COMPLETE, uint32_t(cycle)});
            if (completes >= reads) { fprintf(stderr, "complete before read_done\n"); return 3; }
            const Span& keep = entries[completes].keep;
            for (int p = 0; p < P && keep.space; p++) kept.insert(kept.end(), row(keep.space, p) + keep.low, row(keep.space, p) + keep.high);
            completes++;
        }
        // A read takes the old word when it is written in the same cycle.
#if VECTOR
        READ(s0, src0_sbuf); READ(s1, src1_sbuf); READ(p0, src0_psum); READ(p1, src1_psum);
#else
        READ(s0, src_sbuf); READ(p0, src_psum);
#endif
        bool writes_sbuf = top.dst_sbuf___05Fvalid && top.dst_sbuf___05Fready;
        bool writes_psum = top.dst_psum___05Fvalid && top.dst_psum___05Fready;
        if ((writes_sbuf || writes_psum) && completes == entries.size()) { fprintf(stderr, "write after the last complete\n"); return 5; }
        if (writes_sbuf) write<16>(1, top.dst_sbuf___05Fpayload, sbuf_bits);
        if (writes_psum) write<4>(2, top.dst_psum___05Fpayload, psum_bits);
        top.clk = 1; top.eval();
        if (end < 0 && completes == entries.size()) end = cycle + 100;
    }
    if (end < 0) { fprintf(stderr, "cycle limit: %zu issued, %zu read, %zu complete\n", issued, reads, completes); return 4; }

    FILE* output = fopen(argv[2], "wb");
    if (!output) { perror(argv[2]); return 2; }
    fwrite(sbuf, 1, sizeof sbuf, output);
    fwrite(psum, 1, sizeof psum, output);
    fwrite(kept.data(), 1, kept.size(), output);
    fwrite(events.data(), sizeof(Event), events.size(), output);
    fclose(output);
    return 0;
}

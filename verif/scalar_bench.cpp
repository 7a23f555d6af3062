// Runs instructions through the scalar engine without its memory side: elements in, results out.
//
// Command: bench INPUT OUTPUT.  Macros: PARTITIONS, OP_BYTES.  Both files are described in `scalar_bench.py`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "Vscalar.h"
#include "verilated.h"

static constexpr int BEAT = 4 * PARTITIONS;

struct Header {
    uint32_t ops, beats, results, cycle_limit, deny_source, deny_result, seed;  // deny: of 256
};

static uint64_t state;

static bool chance(uint32_t of256) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t(state >> 33) & 255) < of256;
}

static void read_exactly(void* to, size_t bytes, FILE* file) {
    if (bytes && fread(to, 1, bytes, file) != bytes) { fprintf(stderr, "input too short\n"); exit(2); }
}

int main(int, char** argv) {
    FILE* input = fopen(argv[1], "rb");
    if (!input) { perror(argv[1]); return 2; }
    Header header;
    read_exactly(&header, sizeof header, input);
    std::vector<uint8_t> ops(size_t(header.ops) * OP_BYTES), beats(size_t(header.beats) * BEAT);
    read_exactly(ops.data(), ops.size(), input);
    read_exactly(beats.data(), beats.size(), input);
    fclose(input);
    state = header.seed * 0x9E3779B97F4A7C15ull + 1;

    VerilatedContext context;
    Vscalar top{&context};
    top.rst = 1;
    top.clk = 0; top.eval(); top.clk = 1; top.eval();
    top.rst = 0;

    std::vector<uint8_t> results(size_t(header.results) * BEAT);
    std::vector<uint32_t> cycles;
    size_t op = 0, beat = 0, result = 0;
    bool offered = false;
    long end = -1;
    for (long cycle = 0; cycle < long(header.cycle_limit) && cycle != end; cycle++) {
        top.op___05Fvalid = op < header.ops;
        if (op < header.ops) memcpy(&top.op___05Fpayload, ops.data() + op * OP_BYTES, OP_BYTES);
        // What has been offered stays until it is taken; what is not valid is garbage.
        offered = beat < header.beats && (offered || !chance(header.deny_source));
        top.src___05Fvalid = offered;
        if (offered) memcpy(&top.src___05Fpayload, beats.data() + beat * BEAT, BEAT);
        else memset(&top.src___05Fpayload, 0xEE, BEAT);
        top.o___05Fready = !chance(header.deny_result);
        top.clk = 0; top.eval();

        if (top.op___05Fvalid && top.op___05Fready) op++;
        if (top.src___05Fvalid && top.src___05Fready) { beat++; offered = false; }
        if (top.o___05Fvalid && top.o___05Fready) {
            if (result == header.results) { fprintf(stderr, "a result too many\n"); return 3; }
            memcpy(results.data() + result++ * BEAT, &top.o___05Fpayload, BEAT);
            cycles.push_back(uint32_t(cycle));
        }
        top.clk = 1; top.eval();
        // Some cycles more at the end: nothing may come out in them.
        if (end < 0 && result == header.results && op == header.ops && beat == header.beats) end = cycle + 200;
    }
    if (end < 0) {
        fprintf(stderr, "cycle limit: %zu ops, %zu beats taken, %zu results\n", op, beat, result);
        return 4;
    }
    FILE* output = fopen(argv[2], "wb");
    if (!output) { perror(argv[2]); return 2; }
    fwrite(results.data(), 1, results.size(), output);
    fwrite(cycles.data(), 4, cycles.size(), output);
    fclose(output);
    return 0;
}

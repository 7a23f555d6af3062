// Runs a program of issues through the tensor engine, with memories in C++.
//
// Command: bench INPUT OUTPUT.  Macros: PARTITIONS, SBUF_BYTES, PSUM_WORDS, VISIBLE (cycles from an accumulation to its
// visibility), ISSUE_BYTES.  Both files are described in `tensor_bench.py`.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>
#include "Vtensor.h"
#include "verilated.h"

// Verilator writes the double underscore of a path as ___05F.
static constexpr int P = PARTITIONS;

struct Header {
    uint32_t issues, cycle_limit, issue_gap, deny, seed;  // deny: of 256
};
struct Entry {
    uint8_t issue[ISSUE_BYTES];
    uint32_t low, high;  // bytes that are overwritten after read_done
};
struct Event {
    uint32_t kind, cycle, columns;
};
struct Write {
    long visible;
    uint32_t word, mask, tag, data[P];
};
enum Kind { ISSUE, READ_DONE, COMPLETE, COLUMN, BEAT };

static uint8_t sbuf[P][SBUF_BYTES];
static uint32_t psum[P][PSUM_WORDS];
static uint64_t state;

static uint32_t draw() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state >> 33);
}

static uint32_t add(uint32_t a, uint32_t b) {
    float x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    volatile float z = x + y;
    float r = z;
    if (std::isnan(r)) return 0x7fc00000;
    memcpy(&a, &r, 4);
    return a;
}

template <class Port> static void put(Port& port, const void* from, size_t bytes) {
    static_assert(sizeof(Port) >= 1);
    memcpy(&port, from, bytes);
}

// A read port: random refusals, data two cycles after the request was taken.
struct ReadPort {
    long word[2] = {-1, -1};
    template <class Valid, class Data> void drive(Valid& valid, Data& data) {
        valid = word[1] >= 0;
        for (int p = 0; p < P; p++) {
            uint8_t* lane = reinterpret_cast<uint8_t*>(&data) + 16 * p;
            if (valid) memcpy(lane, &sbuf[p][16 * word[1]], 16);
            else memset(lane, 0xEE, 16);
        }
    }
    void step(bool taken, uint32_t request) {
        // Memory is read when the data leaves it, as late as the contract allows: an early read_done is punished.
        word[1] = word[0];
        word[0] = taken ? long(request) : -1;
    }
};

static void read_exactly(void* to, size_t bytes, FILE* file) {
    if (fread(to, 1, bytes, file) != bytes) { fprintf(stderr, "input too short\n"); exit(2); }
}

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

    VerilatedContext context;
    Vtensor top{&context};
    top.rst = 1;
    top.clk = 0; top.eval(); top.clk = 1; top.eval();
    top.rst = 0;

    std::vector<Event> events;
    std::deque<Write> writes;
    ReadPort stationary, moving;
    size_t issued = 0, reads = 0, completes = 0;
    uint32_t columns = 0;
    long cycle = 0, next_issue = 0;
    // Some cycles more at the end: nothing may happen in them.
    long end = -1;
    for (; cycle < long(header.cycle_limit) && cycle != end; cycle++) {
        uint32_t done = 0;
        while (!writes.empty() && writes.front().visible <= cycle) {
            const Write& w = writes.front();
            for (int p = 0; p < P; p++)
                if (w.mask >> p & 1) psum[p][w.word] = w.data[p];
            done = w.tag;
            columns++;
            writes.pop_front();
        }
        stationary.drive(top.stationary___05Fvalid, top.stationary___05Fdata);
        moving.drive(top.moving___05Fvalid, top.moving___05Fdata);
        top.stationary___05Freq___05Fready = (draw() & 255) >= header.deny;
        top.moving___05Freq___05Fready = (draw() & 255) >= header.deny;
        bool offer = issued < entries.size() && cycle >= next_issue;
        top.engine___05Fissue___05Fvalid = offer;
        if (offer) put(top.engine___05Fissue___05Fpayload, entries[issued].issue, ISSUE_BYTES);
        top.accumulate___05Fdone = done != 0;
        top.accumulate___05Fdone_tag = done;
        top.clk = 0; top.eval();

        if (offer && top.engine___05Fissue___05Fready) {
            events.push_back({ISSUE, uint32_t(cycle), columns});
            issued++;
            next_issue = cycle + 1 + header.issue_gap;
        }
        stationary.step(top.stationary___05Freq___05Fvalid && top.stationary___05Freq___05Fready, top.stationary___05Freq___05Fpayload);
        moving.step(top.moving___05Freq___05Fvalid && top.moving___05Freq___05Fready, top.moving___05Freq___05Fpayload);
        if (top.column_active) events.push_back({COLUMN, uint32_t(cycle), columns});
        if (top.load_active) events.push_back({BEAT, uint32_t(cycle), columns});
        if (top.engine___05Fread_done) {
            events.push_back({READ_DONE, uint32_t(cycle), columns});
            if (reads >= entries.size()) { fprintf(stderr, "read_done without instruction\n"); return 3; }
            const Entry& entry = entries[reads++];
            for (int p = 0; p < P && entry.high > entry.low; p++) memset(&sbuf[p][entry.low], 0xA5, entry.high - entry.low);
        }
        if (top.engine___05Fcomplete) {
            events.push_back({COMPLETE, uint32_t(cycle), columns});
            completes++;
        }
        if (top.accumulate___05Fvalid) {
            Write w;
            w.visible = cycle + VISIBLE;
            w.word = top.accumulate___05Fword;
            w.mask = top.accumulate___05Fpartitions;
            w.tag = top.accumulate___05Ftag;
            uint32_t value[P];
            memcpy(value, &top.accumulate___05Fdata, sizeof value);
            for (int p = 0; p < P; p++)
                w.data[p] = top.accumulate___05Faccumulate ? add(psum[p][w.word], value[p]) : value[p];
            writes.push_back(w);
        }
        top.clk = 1; top.eval();
        if (end < 0 && completes == entries.size()) end = cycle + 200;
    }
    if (end < 0) { fprintf(stderr, "cycle limit: %zu issued, %zu read, %zu complete\n", issued, reads, completes); return 4; }
    if (!writes.empty()) { fprintf(stderr, "results after the last complete\n"); return 5; }

    FILE* output = fopen(argv[2], "wb");
    if (!output) { perror(argv[2]); return 2; }
    fwrite(psum, 1, sizeof psum, output);
    fwrite(events.data(), sizeof(Event), events.size(), output);
    fclose(output);
    return 0;
}

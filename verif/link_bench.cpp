// Two link ports (two instances of one Verilated model) on a channel, with traffic and a scoreboard in C++.
//
// Command: bench SETTINGS: a text file of lines "key value" (link_bench.py writes it and explains the keys).  Prints
// "key value" lines of results; exit status 0 only when every check held.  Macros: BEAT (bytes), LANES, DEPTHS (comma
// list, VC buffer granules).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "Vlink.h"
#include "Vlink___024root.h"
#include "verilated.h"

static constexpr int G = BEAT / 16;              // granules of a beat
static constexpr int SYMBOL = BEAT / LANES;      // bytes of a lane's symbol
static constexpr int COUNT_BITS = G == 4 ? 3 : G == 2 ? 2 : 1;
static constexpr int VCS = 8;

static std::map<std::string, double> settings;
static double setting(const char* key, double fallback) {
    auto found = settings.find(key);
    return found == settings.end() ? fallback : found->second;
}

static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

struct Random {
    uint64_t state;
    uint64_t next() { return mix(state++); }
    uint32_t below(uint32_t n) { return n ? (next() >> 16) % n : 0; }
    bool chance(double p) { return p > 0 && (p >= 1 || (next() >> 11) * 0x1p-53 < p); }
    // Steps until the next event of probability p a step.
    uint64_t gap(double p) {
        if (p <= 0) return UINT64_MAX;
        double u = ((next() >> 11) + 1) * 0x1p-53, steps = __builtin_log(u) / __builtin_log1p(-p);
        return steps > 1e18 ? UINT64_MAX : uint64_t(steps) + 1;
    }
};

static uint64_t cycle;
static bool failed;
template <class... Args> static void fail(const char* format, Args... args) {
    if (!failed) {
        std::printf("error cycle %lu: ", (unsigned long)cycle);
        std::printf(format, args...);
        std::printf("\n");
    }
    failed = true;
}

template <class T> static uint8_t* bytes(T& value) { return reinterpret_cast<uint8_t*>(&value); }

static uint32_t bits(const uint8_t* data, int low, int width) {
    uint64_t word = 0;
    for (int i = 0; i < 5; i++) word |= uint64_t(data[low / 8 + i]) << 8 * i;
    return word >> low % 8 & ((1ull << width) - 1);
}

// --- traffic -------------------------------------------------------------------------------------------------------

static void granule(uint8_t* out, int side, int vc, uint32_t generation, uint64_t number, int length, int index) {
    if (index == 0) {  // HEADER: kind 4, granules 7, tag 8, status 3, bytes 11, address 48, value 32
        unsigned __int128 h = 1 | (unsigned)length << 4 | uint64_t(vc) << 11 | uint64_t((length - 1) * 16) << 22;
        h |= (unsigned __int128)(number & 0xFFFFFFFFFFull) << 33;
        h |= (unsigned __int128)(generation | (uint32_t)side << 31) << 81;
        std::memcpy(out, &h, 16);
        return;
    }
    uint64_t key = mix(number * 131 + generation * 65537 + vc * 7 + side) + index;
    uint64_t words[2] = {mix(key), mix(key ^ 0x5555)};
    std::memcpy(out, words, 16);
}

struct Packet {
    uint32_t generation;
    uint64_t number;
    int length;
    uint64_t last_in;  // cycle in which the last beat was taken
};

struct Source {  // packets back to back in beats
    int side, vc;
    bool offering = false, given_up = false;
    uint32_t generation = 0;
    uint64_t number = 0;  // of the packet in work, or the next one
    int length = 0, position = 0;  // of the packet in work; length 0: none
    std::vector<Packet> ends;      // packets that end in the offered beat
    bool aligned = true;           // the offered beat ends with an end
    bool in_packet() const { return length || offering; }
};

struct Sink {
    int position = 0;
    bool have_generation = false;
    uint32_t generation = 0;
    uint64_t next = 0;
    Packet current{};
};

struct Settings {
    double rate, open, stall;
    uint32_t minimum, maximum, vcs;
};

// --- channel -------------------------------------------------------------------------------------------------------

struct Lane {
    std::vector<uint8_t> ring;
    int delay = 0, offset = 0;
    bool inverted = false;
    int stuck = -1;
    uint64_t head = 0;
};

struct Channel {  // one direction
    Lane lane[LANES];
    Random random;
    double error_rate = 0;  // of a step
    int burst = 1;
    uint64_t next_error = UINT64_MAX;
    uint64_t steps = 0, errors = 0;
    uint64_t drop = 0;       // steps to lose
    uint64_t cut_until = 0;  // cycle
    bool noise = false, reversed = false;
    uint64_t flip_at = UINT64_MAX;  // step in which every lane gets a wrong bit
    static constexpr int RING = 8192;

    void build() {
        for (auto& l : lane) l.ring.assign(RING * SYMBOL, 0);
    }
    void rate(double p) {
        error_rate = p;
        uint64_t gap = random.gap(p);
        next_error = gap == UINT64_MAX ? gap : steps + gap;
    }
    // One symbol on every lane; false: nothing arrives in this cycle.
    bool step(const uint8_t* in, uint8_t* out, uint32_t* valid, bool enabled) {
        uint8_t wire[BEAT];
        std::memcpy(wire, in, BEAT);
        if (steps >= next_error) {
            int start = random.below(8 * BEAT);
            int limit = (start / (8 * SYMBOL) + 1) * 8 * SYMBOL;  // a burst stays on its lane
            for (int i = start; i < start + burst && i < limit; i++)
                if (i == start || burst == 1 || random.chance(0.5)) wire[i / 8] ^= 1 << i % 8;
            errors++;
            next_error = steps + random.gap(error_rate);
        }
        if (steps == flip_at)
            for (int i = 0; i < LANES; i++) wire[i * SYMBOL] ^= 1;
        steps++;
        if (drop) {
            drop--;
            return false;
        }
        bool cut = cycle < cut_until || !enabled;
        *valid = 0;
        for (int i = 0; i < LANES; i++) {
            Lane& l = lane[i];
            uint8_t* symbol = &l.ring[(l.head % RING) * SYMBOL];
            for (int b = 0; b < SYMBOL; b++) {
                uint8_t value = wire[i * SYMBOL + b];
                if (l.stuck >= 0) value = l.stuck ? 0xFF : 0;
                if (cut) value = noise ? random.next() : 0;
                symbol[b] = l.inverted ? ~value : value;
            }
            l.head++;
            uint64_t at = l.head - 1 - l.delay;
            int target = reversed ? LANES - 1 - i : i;
            uint8_t* place = out + target * SYMBOL;
            if (l.head - 1 < (uint64_t)l.delay) {
                std::memset(place, 0, SYMBOL);
                continue;
            }
            const uint8_t* now = &l.ring[(at % RING) * SYMBOL];
            if (l.offset == 0) {
                std::memcpy(place, now, SYMBOL);
            } else {  // the boundary is `offset` bits late: low bits come from the symbol before
                const uint8_t* before = &l.ring[((at + RING - 1) % RING) * SYMBOL];
                for (int bit = 0; bit < 8 * SYMBOL; bit++) {
                    int from = bit - l.offset;
                    const uint8_t* source = from < 0 ? before : now;
                    from = from < 0 ? from + 8 * SYMBOL : from;
                    uint8_t value = source[from / 8] >> from % 8 & 1;
                    place[bit / 8] = (place[bit / 8] & ~(1 << bit % 8)) | value << bit % 8;
                }
            }
            if (!cut || noise) *valid |= 1u << target;
        }
        return true;
    }
    // The same to a step that is on its way already.
    void flip_past(int steps_ago) {
        for (Lane& l : lane) l.ring[((l.head - steps_ago) % RING) * SYMBOL] ^= 1;
    }
    void slip(uint32_t lanes) {
        for (int i = 0; i < LANES; i++)
            if (lanes >> (reversed ? LANES - 1 - i : i) & 1) lane[i].offset = (lane[i].offset + 1) % (8 * SYMBOL);
    }
};

// --- one side --------------------------------------------------------------------------------------------------------

static const int depths[VCS] = {DEPTHS};

struct Register {
    uint32_t offset, data;
};

struct Side {
    Vlink* dut;
    int index;
    Random random;
    Settings traffic;
    Channel out;  // from here to the other side
    Source source[VCS];
    Sink sink[VCS];
    std::deque<Packet> expected[VCS];  // packets sent to the OTHER side, in order
    std::vector<Register> writes;
    uint32_t closed = 0;
    uint32_t generation = 0;
    uint64_t lost_count = 0, reset_until = 0;
    uint64_t packets = 0, granules = 0, accepted = 0;  // accepted: payload flits, whatever resets do to the counters
    uint64_t latency_minimum = UINT64_MAX, latency_maximum = 0;
    std::vector<uint64_t> slot_cycle = std::vector<uint64_t>(1 << SEQUENCE_BITS);  // 0: number not sent yet
    uint64_t nak_minimum = UINT64_MAX, nak_maximum = 0, nak_sum = 0, naks = 0;     // see nak_way()
    double phase = 0;
    bool sending = true;

    template <class F> void stream(int vc, F f) {
#define VC_CASE(n)                                                                                          \
    case n:                                                                                                 \
        f(bytes(dut->tx##n##___05Fpayload), dut->tx##n##___05Fvalid, dut->tx##n##___05Fready);              \
        break;
        switch (vc) {
            VC_CASE(0) VC_CASE(1) VC_CASE(2) VC_CASE(3) VC_CASE(4) VC_CASE(5) VC_CASE(6) VC_CASE(7)
        }
    }

    void begin_packet(Source& s) {
        s.generation = generation;
        s.length = traffic.minimum + random.below(traffic.maximum - traffic.minimum + 1);
        s.position = 0;
    }

    void offer() {  // decide what the sources offer in this cycle
        for (int vc = 0; vc < VCS; vc++) {
            Source& s = source[vc];
            stream(vc, [&](uint8_t*, uint8_t& valid, uint8_t&) { valid = s.offering; });
            if (s.offering) continue;
            bool allowed = sending && traffic.vcs >> vc & 1 && !s.given_up;
            if (!s.length) {
                if (!allowed || !random.chance(traffic.rate)) continue;
                begin_packet(s);
            } else if (random.chance(traffic.stall)) {
                continue;
            }
            uint8_t buffer[BEAT + 8] = {};
            uint32_t last = 0;
            int count = 0;
            s.ends.clear();
            while (count < G && s.length) {
                granule(buffer + 16 * count, index, vc, s.generation, s.number, s.length, s.position);
                s.position++;
                if (s.position == s.length) {
                    last |= 1u << count;
                    s.ends.push_back({s.generation, s.number++, s.length, 0});
                    s.length = 0;
                    if (allowed && traffic.rate >= 1 && count + 1 < G) begin_packet(s);
                }
                count++;
            }
            s.aligned = last >> (count - 1) & 1;
            s.offering = true;
            stream(vc, [&](uint8_t* payload, uint8_t& valid, uint8_t&) {
                uint32_t tail = count | last << COUNT_BITS;
                std::memcpy(buffer + BEAT, &tail, 4);
                std::memcpy(payload, buffer, BEAT + 4);
                valid = 1;
            });
        }
    }

    void taken() {  // before the clock edge: which beats are taken
        for (int vc = 0; vc < VCS; vc++) {
            Source& s = source[vc];
            if (!s.offering) continue;
            stream(vc, [&](uint8_t*, uint8_t&, uint8_t& ready) {
                if (!ready) return;
                s.offering = false;  // withdrawn behind the clock edge
                if (s.given_up) {  // the port has thrown the beat away
                    s.given_up = !s.aligned;
                    return;
                }
                for (Packet& packet : s.ends) {
                    packet.last_in = cycle;
                    expected[vc].push_back(packet);
                }
            });
        }
    }

    // State lost: what was sent may be lost, a packet in work is thrown away up to its end.
    void lose_sources(bool reset) {
        generation++;
        for (Source& s : source) {
            s.given_up = !reset && (s.offering || s.length);
            if (!reset) continue;
            s.number += s.length != 0;
            s.length = 0;
            s.offering = false;
        }
    }

    void forget_received() {
        for (auto& s : sink) {
            s.position = 0;
            s.have_generation = false;
        }
    }

    // A granule that `peer` sent.
    void receive_granule(Side& peer, int vc, const uint8_t* data, bool first, bool last) {
        Sink& s = sink[vc];
        auto& queue = peer.expected[vc];
        if (first != (s.position == 0))
            return fail("side %d VC %d: first = %d at granule %d", index, vc, first, s.position);
        if (first) {
            unsigned __int128 h;
            std::memcpy(&h, data, 16);
            uint32_t value = uint32_t(h >> 81);
            s.current = {value & 0x7FFFFFFF, uint64_t(h >> 33) & 0xFFFFFFFFFFull, int(unsigned(h >> 4) & 127), 0};
            if (int(value >> 31) != peer.index) fail("side %d VC %d: packet of side %u", index, vc, value >> 31);
            if (!s.have_generation) {  // first packet since the start: nothing older than the sender's present one
                while (!queue.empty() && queue.front().generation < s.current.generation) queue.pop_front();
                if (s.current.generation < s.generation)
                    fail("side %d VC %d: generation %u behind %u", index, vc, s.current.generation, s.generation);
                s.have_generation = true;
                s.generation = s.current.generation;
            }
            if (s.current.generation != s.generation)
                fail("side %d VC %d: packet of generation %u among %u", index, vc, s.current.generation, s.generation);
            // The packet may still be on its way in when its head comes out.
            const Source& from = peer.source[vc];
            Packet awaited{from.generation, from.number, from.length, 0};
            if (!queue.empty()) awaited = queue.front();
            else if (from.offering && !from.ends.empty()) awaited = from.ends.front();
            if (awaited.generation != s.current.generation || awaited.number != s.current.number ||
                awaited.length != s.current.length)
                fail("side %d VC %d: got packet %u/%lu of %d granules, next is %u/%lu of %d", index, vc,
                     s.current.generation, (unsigned long)s.current.number, s.current.length, awaited.generation,
                     (unsigned long)awaited.number, awaited.length);
        }
        if (failed) return;
        uint8_t want[16];
        granule(want, peer.index, vc, s.current.generation, s.current.number, s.current.length, s.position);
        if (std::memcmp(want, data, 16))
            return fail("side %d VC %d: packet %lu granule %d differs", index, vc, (unsigned long)s.current.number,
                        s.position);
        s.position++;
        granules++;
        if (last != (s.position == s.current.length))
            return fail("side %d VC %d: last = %d behind granule %d of %d", index, vc, last, s.position,
                        s.current.length);
        if (!last) return;
        s.position = 0;
        packets++;
        if (queue.empty()) return fail("side %d VC %d: end of a packet that has not ended", index, vc);
        uint64_t latency = cycle - queue.front().last_in;
        if (latency < latency_minimum) latency_minimum = latency;
        if (latency > latency_maximum) latency_maximum = latency;
        queue.pop_front();
    }

    void receive(Side& peer, const uint8_t* payload) {
        int vc = bits(payload, 0, 3), tail = 3 + 8 * BEAT;
        uint8_t data[BEAT];
        for (int i = 0; i < BEAT; i++) data[i] = bits(payload, 3 + 8 * i, 8);
        int count = bits(payload, tail, COUNT_BITS);
        uint32_t first = bits(payload, tail + COUNT_BITS, G), last = bits(payload, tail + COUNT_BITS + G, G);
        if (bits(payload, tail + COUNT_BITS + 2 * G, G)) fail("side %d VC %d: poison", index, vc);
        if (count < 1 || count > G) fail("side %d VC %d: %d granules in a beat", index, vc, count);
        for (int i = 0; i < count && !failed; i++)
            receive_granule(peer, vc, data + 16 * i, first >> i & 1, last >> i & 1);
    }

    uint32_t read(uint32_t offset) {
        dut->registers___05Foffset = offset;
        dut->registers___05Fwrite = 0;
        dut->eval();
        return dut->registers___05Fvalue;
    }
    void write_register(uint32_t offset, uint32_t data) { writes.push_back({offset, data}); }
    bool active() { return (read(4) & 15) == 7; }
    uint32_t counter(int n) { return read(0x200 + 4 * n); }
};

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
static std::vector<std::string> names_of(std::string list) {
    std::vector<std::string> names(1);
    for (char c : list) {
        if (c == ',') names.emplace_back();
        else if (c != ' ') names.back() += c;
    }
    return names;
}
static const std::vector<std::string> counters = names_of(TEXT(COUNTER_NAMES));
static const int COUNTERS = counters.size();

static Side sides[2];

static void edge() {
    for (auto& s : sides) {
        s.dut->clk = 1;
        s.dut->eval();
    }
    for (auto& s : sides) {
        s.dut->clk = 0;
        s.dut->eval();
    }
    cycle++;
}

static std::vector<uint64_t> base_counters[2];  // at the start of the measured time; a reset puts counters to 0
static uint32_t wire_valid[2];
static uint8_t wire_data[2][BEAT + 8];

// One fault: the first thing of a kind that side A sends while side B is in a given state gets a wrong bit.  Kinds: of
// `Item` in link_bench.py.
static bool armed;
static int hits;

static void single_fault() {
    static bool was_started, fresh_ack, fresh_credit;
    Side &s = sides[0], &peer = sides[1];
    int kind = setting("fault_kind", 0);
    if (!kind) return;
    const auto* top = s.dut->rootp;
    bool started = top->link__DOT__core__DOT__lanes_tx__DOT__started;
    bool has_started = started && !was_started;
    bool ends = top->link__DOT__core__DOT__transmitter__DOT__compose &&
                top->link__DOT__core__DOT__transmitter__DOT__last_beat && started;
    bool acknowledges = ends && fresh_ack, credits = ends && fresh_credit;
    was_started = started;
    fresh_ack = (fresh_ack && !ends) || top->link__DOT__core__DOT__receiver__DOT__rx_data;
    fresh_credit = (fresh_credit && !ends) || (s.dut->rx___05Fvalid && s.dut->rx___05Fready);
    if (s.dut->registers___05Fwrite || peer.dut->registers___05Fwrite) return;  // reading would undo the write
    if (!armed || hits || int(peer.read(4) & 15) != int(setting("fault_state", 0))) return;
    int state = s.read(4) & 15, composed = top->link__DOT__core__DOT__transmitter__DOT__kind;
    bool now = false;
    switch (kind) {
        case 1: now = state == 1 || state == 8; break;                // DETECT frames: DETECT, RECOVERY
        case 2: case 3: case 4: case 5: now = state == kind; break;  // LOCK, ALIGN, TS1, TS2
        case 6: now = has_started; break;                             // START
        case 16: case 17: case 18: case 19: now = ends && composed == kind - 16; break;
        case 20: now = top->link__DOT__core__DOT__reverse___05Fnak_taken; break;
        case 21: now = acknowledges; break;
        case 22: now = credits; break;
    }
    if (!now) return;
    hits++;
    // The last beat of a flit is on the wire five cycles after it has been composed; START has just been sent.
    if (kind == 6) s.out.flip_past(4);
    else s.out.flip_at = s.out.steps + (kind < 6 ? 1 : 4);
}

// The way of a NAK, seen at the end whose flit was bad: cycles from the cycle in which the slot of the first missing flit
// was composed to the one in which the NAK for it starts a replay.
static void nak_way(Side& s) {
    const auto* top = s.dut->rootp;
    if (top->link__DOT__core__DOT__transmitter__DOT__compose && top->link__DOT__core__DOT__transmitter__DOT__last_beat) {
        unsigned kind = top->link__DOT__core__DOT__transmitter__DOT__kind;
        unsigned number = top->link__DOT__core__DOT__transmitter__DOT__sequence;
        if (kind >= 2) s.slot_cycle[number] = cycle;  // DATA, RESEND
        if (kind == 2) s.slot_cycle[(number + 1) & ((1 << SEQUENCE_BITS) - 1)] = 0;
    }
    if (!top->link__DOT__core__DOT__transmitter__DOT__replays || !top->link__DOT__core__DOT__transmitter__DOT__nak_received)
        return;
    uint64_t sent = s.slot_cycle[top->link__DOT__core__DOT__transmitter__DOT__acknowledge___05Facknowledge];
    if (!sent) return;
    uint64_t way = cycle - sent;
    s.nak_minimum = std::min(s.nak_minimum, way), s.nak_maximum = std::max(s.nak_maximum, way);
    s.nak_sum += way, s.naks++;
}

static void run_cycle() {
    double ppm = setting("ppm", 0);  // A's symbol clock runs that much slower than the cores, B's half of it
    for (auto& s : sides) {
        s.dut->rst = cycle < s.reset_until || cycle < 8;
        s.offer();
        s.dut->rx_open = ~s.closed & 0xFF;
        s.dut->rx___05Fready = s.random.chance(s.traffic.open);
        double slow = ppm * (s.index ? 0.5 : 1.0) * 1e-6;
        s.phase += slow;
        s.dut->phy___05Ftx_ready = s.phase < 1;
        if (s.phase >= 1) s.phase -= 1;
        s.dut->registers___05Fwrite = 0;
        if (!s.writes.empty()) {
            s.dut->registers___05Foffset = s.writes.front().offset;
            s.dut->registers___05Fdata = s.writes.front().data;
            s.dut->registers___05Fwrite = 1;
            s.writes.erase(s.writes.begin());
        }
    }
    for (auto& s : sides) s.dut->eval();
    for (auto& s : sides) {  // wires: what is on the pins now arrives delay symbols later
        Side& peer = sides[1 - s.index];
        uint32_t valid = 0;
        if (s.dut->phy___05Ftx_ready &&
            s.out.step(bytes(s.dut->phy___05Ftx_data), wire_data[s.index], &valid, s.dut->phy___05Ftx_enable != 0))
            wire_valid[s.index] = valid;
        else
            wire_valid[s.index] = 0;
        std::memcpy(bytes(peer.dut->phy___05Frx_data), wire_data[s.index], BEAT);
        peer.dut->phy___05Frx_valid = wire_valid[s.index];
    }
    for (auto& s : sides) s.dut->eval();
    single_fault();
    for (auto& s : sides) {
        Side& peer = sides[1 - s.index];
        peer.out.slip(s.dut->phy___05Frx_slip);
        bool lost = s.dut->lost;
        s.accepted += s.dut->rootp->link__DOT__core__DOT__receiver__DOT__rx_data && !s.dut->rst;
        if (s.dut->rx___05Fvalid && s.dut->rx___05Fready && !s.dut->rst) s.receive(peer, bytes(s.dut->rx___05Fpayload));
        if (!s.dut->rst) s.taken(), nak_way(s);
        if (lost || s.dut->rst) {
            if (lost) s.lost_count++;
            s.lose_sources(s.dut->rst);
            if (s.dut->rst)
                for (auto& count : base_counters[s.index]) count = 0;
            s.forget_received();
        }
    }
    edge();
}

static bool both_active() { return sides[0].active() && sides[1].active(); }

static bool drained() {
    for (auto& s : sides)
        for (int vc = 0; vc < VCS; vc++)
            if (!s.expected[vc].empty() || s.source[vc].in_packet()) return false;
    return true;
}

static void shuffle_lanes() {
    int skew = setting("skew", 0);
    for (auto& s : sides) {
        int base = setting(s.index ? "delay_b" : "delay_a", setting("delay", 0));
        for (auto& l : s.out.lane) {
            l.delay = base + s.random.below(skew + 1);
            l.offset = setting("bit_offset", 0) ? s.random.below(8 * SYMBOL) : 0;
            l.inverted = setting("inverted", 0) && s.random.below(2);
        }
    }
}

static void faults() {
    static Random random{mix(setting("seed", 1) * 977)};
    auto every = [&](const char* key) {
        double n = setting(key, 0);
        return n > 0 && random.chance(1 / n);
    };
    Side& s = sides[random.below(2)];
    if (every("retrain_every")) s.write_register(0, 0x21 | 2);
    if (every("reset_every")) s.reset_until = cycle + 1 + random.below(200);
    if (every("cut_every")) {
        s.out.cut_until = cycle + 1 + random.below(setting("cut_cycles", 10000));
        s.out.noise = random.below(2);
        if (random.below(2)) {
            sides[1 - s.index].out.cut_until = s.out.cut_until;
            sides[1 - s.index].out.noise = s.out.noise;
        }
    }
    if (every("drop_every")) s.out.drop = 1 + random.below(12);
    if (every("stuck_every")) s.out.lane[random.below(LANES)].stuck = random.below(2);
    if (every("heal_every"))
        for (auto& l : s.out.lane) l.stuck = -1;
    if (every("close_every")) s.closed = random.next() & random.next() & 0xFF;
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    std::ifstream file(argv[1]);
    std::string key;
    double value;
    while (file >> key >> value) settings[key] = value;
    uint64_t seed = setting("seed", 1);
    for (int i = 0; i < 2; i++) {
        Side& s = sides[i];
        s.index = i;
        s.random.state = mix(seed * 31 + i);
        s.out.random.state = mix(seed * 57 + i);
        s.dut = new Vlink;
        s.dut->clk = 0;
        s.dut->rst = 1;
        s.dut->entropy = setting("same_entropy", 0) ? 0 : uint32_t(mix(seed + 1000 * i));
        const char* suffix = i ? "_b" : "_a";
        auto of = [&](const char* name, double fallback) {
            return setting((std::string(name) + suffix).c_str(), setting(name, fallback));
        };
        s.traffic = {of("rate", 1), of("open", 1), of("stall", 0), uint32_t(of("minimum", 1)), uint32_t(of("maximum", 65)),
                     uint32_t(of("vcs", 255))};
        for (int vc = 0; vc < VCS; vc++) s.source[vc].side = i, s.source[vc].vc = vc;
        s.out.build();
        s.out.burst = setting("burst", 1);
        s.out.reversed = setting("reversed", 0) && i == 0;
    }
    shuffle_lanes();
    uint64_t limit = setting("cycle_limit", 1e6), training_limit = setting("training_limit", 200000);
    for (auto& s : sides) {
        s.sending = false;
        if (settings.count("timeout")) s.write_register(0x20, settings["timeout"]);
        if (settings.count("weights")) s.write_register(0x28, settings["weights"]);
    }
    armed = !setting("fault_later", 0);
    while (!failed && cycle < training_limit && !(cycle > 16 && both_active())) run_cycle();
    if (!both_active()) fail("not ACTIVE after %lu cycles: states %u and %u", (unsigned long)training_limit,
                             sides[0].read(4), sides[1].read(4));
    std::printf("training_cycles %lu\n", (unsigned long)cycle);
    for (int i = 0; i < 2; i++) {
        sides[i].sending = true;
        sides[i].out.rate(setting("step_error_rate", 0));
    }
    uint64_t warm = cycle + setting("warm_cycles", 0);
    while (!failed && cycle < warm) run_cycle();
    uint64_t base_granules[2];
    for (int i = 0; i < 2; i++) {
        sides[i].write_register(0, 0x21 | 0x80);  // snapshot
    }
    run_cycle();
    run_cycle();
    for (int i = 0; i < 2; i++) {
        base_granules[i] = sides[i].granules;
        sides[i].latency_minimum = UINT64_MAX;
        sides[i].latency_maximum = 0;
        for (int n = 0; n < COUNTERS; n++) base_counters[i].push_back(sides[i].counter(n));
    }
    armed = true;
    if (setting("fault_later", 0) == 2) sides[1].write_register(0, 0x21 | 2);
    if (setting("fault_later", 0) == 3)
        for (auto& s : sides) s.out.flip_at = s.out.steps + 1;
    const uint64_t begin = cycle;
    const uint64_t base_packets[2] = {sides[0].packets, sides[1].packets};
    uint64_t target = setting("packets", 0);
    uint64_t until = target ? limit : begin + uint64_t(setting("cycles", 10000));
    while (!failed && cycle < until && !(target && sides[0].packets >= target && sides[1].packets >= target)) {
        faults();
        run_cycle();
    }
    if (target && cycle >= limit) fail("%lu and %lu packets of %lu after %lu cycles", (unsigned long)sides[0].packets,
                                       (unsigned long)sides[1].packets, (unsigned long)target, (unsigned long)limit);
    std::printf("cycles %lu\n", (unsigned long)(cycle - begin));
    for (int i = 0; i < 2; i++) sides[i].write_register(0, 0x21 | 0x80);
    run_cycle();
    run_cycle();
    for (int i = 0; i < 2; i++) {
        Side& s = sides[i];
        char side = "ab"[i];
        std::printf("granules_%c %lu\npackets_%c %lu\n", side, (unsigned long)(s.granules - base_granules[i]), side,
                    (unsigned long)(s.packets - base_packets[i]));
        std::printf("latency_min_%c %lu\nlatency_max_%c %lu\n", side, (unsigned long)s.latency_minimum, side,
                    (unsigned long)s.latency_maximum);
        if (s.naks)
            std::printf("nak_way_min_%c %lu\nnak_way_max_%c %lu\nnak_way_sum_%c %lu\nnak_ways_%c %lu\n", side,
                        (unsigned long)s.nak_minimum, side, (unsigned long)s.nak_maximum, side,
                        (unsigned long)s.nak_sum, side, (unsigned long)s.naks);
        std::printf("rtt_%c %u\n", side, s.read(0x18) & 0xFFFF);
        for (int n = 0; n < COUNTERS; n++)
            std::printf("%s_%c %lu\n", counters[n].c_str(), side, (unsigned long)(s.counter(n) - base_counters[i][n]));
        std::printf("accepted_%c %lu\n", side, (unsigned long)s.accepted);
        std::printf("lost_%c %lu\nchannel_errors_%c %lu\n", side, (unsigned long)s.lost_count, side,
                    (unsigned long)s.out.errors);
    }
    // The end: no more errors, everything arrives, credits are back (limits count whole units of 4 granules).
    uint64_t given_up = 0;
    for (auto& s : sides) {
        s.sending = false;
        s.closed = 0;
        s.traffic.open = 1;
        s.out.rate(0);
        s.out.cut_until = 0;
        for (auto& l : s.out.lane) l.stuck = -1;
    }
    uint64_t end = cycle + setting("drain_limit", 400000);
    while (!failed && cycle < end && !(cycle % 16 == 0 && drained() && both_active())) {
        run_cycle();
        // What was sent into a generation that is over is lost, and said to be lost.
        for (auto& s : sides)
            for (int vc = 0; vc < VCS; vc++)
                while (!s.expected[vc].empty() && s.expected[vc].front().generation < s.generation &&
                       sides[1 - s.index].sink[vc].have_generation == false)
                    s.expected[vc].pop_front(), given_up++;
    }
    if (!failed && !drained()) fail("not drained: states %x and %x", sides[0].read(4), sides[1].read(4));
    uint64_t settled = cycle + 600 + 4 * (sides[0].read(0x18) & 0xFFFF);
    while (!failed && cycle < settled) run_cycle();
    for (auto& s : sides) {
        uint32_t available[VCS] = {};
#define CREDIT(n) \
    available[n] = s.dut->rootp->link__DOT__core__DOT__transmitter__DOT__credit##n##__DOT__available;
        CREDIT(0) CREDIT(1) CREDIT(2) CREDIT(3) CREDIT(4) CREDIT(5) CREDIT(6) CREDIT(7)
        for (int vc = 0; vc < VCS; vc++)
            if (!failed && (available[vc] > uint32_t(depths[vc]) || available[vc] + 4 <= uint32_t(depths[vc])))
                fail("side %d VC %d: %u granules of credit at the end, buffer has %d", s.index, vc, available[vc],
                     depths[vc]);
        std::printf("reasons_%c %u\n", "ab"[s.index], s.read(4) >> 16);
    }
    std::printf("hits %d\n", hits);
    std::printf("given_up %lu\n", (unsigned long)given_up);
    std::printf("simulated %lu\nfailed %d\n", (unsigned long)cycle, failed);
    return failed;
}

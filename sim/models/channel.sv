// The wires of one link: two directions between two PhyPorts (hdl/link/ports.py), each with its own
// faults.  All settings are plain inputs, so that a testbench may take them from plusargs and a C++
// harness may drive them.  Settings marked (reset) are taken while rst is high, the others may
// change in any cycle.
//
// A symbol taken from tx in one cycle is on rx behind the clock edge `delay` + `skew` cycles later;
// 0 is a register.  With `elastic` 16 more.
module channel #(
    parameter LANES = 4,
    parameter SYMBOL_BITS = 32,
    parameter DEPTH = 16384  // symbols on the way, a power of two, above delay + skew + 64
) (
    input wire clk,
    input wire rst,

    input wire [LANES*SYMBOL_BITS-1:0] a_tx_data,
    input wire [LANES-1:0] a_tx_enable,
    output wire a_tx_ready,
    output wire [LANES*SYMBOL_BITS-1:0] a_rx_data,
    output wire [LANES-1:0] a_rx_valid,
    input wire [LANES-1:0] a_rx_slip,

    input wire [LANES*SYMBOL_BITS-1:0] b_tx_data,
    input wire [LANES-1:0] b_tx_enable,
    output wire b_tx_ready,
    output wire [LANES*SYMBOL_BITS-1:0] b_rx_data,
    output wire [LANES-1:0] b_rx_valid,
    input wire [LANES-1:0] b_rx_slip,

    // a to b; what each does is said in channel_direction
    input wire [31:0] ab_seed,
    input wire [15:0] ab_delay,
    input wire [LANES*16-1:0] ab_skew,
    input wire [LANES*8-1:0] ab_offset,
    input wire [31:0] ab_error_rate,
    input wire [15:0] ab_error_burst,
    input wire [31:0] ab_drop_rate,
    input wire [LANES-1:0] ab_stuck_zero,
    input wire [LANES-1:0] ab_stuck_one,
    input wire [LANES-1:0] ab_invert,
    input wire ab_reverse,
    input wire [LANES-1:0] ab_silent,
    input wire [LANES-1:0] ab_noise,
    input wire [31:0] ab_tx_gap,
    input wire [31:0] ab_rx_gap,
    input wire ab_elastic,
    output wire [31:0] ab_errors,
    output wire [31:0] ab_drops,
    output wire [31:0] ab_skips_dropped,
    output wire [31:0] ab_skips_repeated,
    output wire [31:0] ab_overflows,

    // b to a
    input wire [31:0] ba_seed,
    input wire [15:0] ba_delay,
    input wire [LANES*16-1:0] ba_skew,
    input wire [LANES*8-1:0] ba_offset,
    input wire [31:0] ba_error_rate,
    input wire [15:0] ba_error_burst,
    input wire [31:0] ba_drop_rate,
    input wire [LANES-1:0] ba_stuck_zero,
    input wire [LANES-1:0] ba_stuck_one,
    input wire [LANES-1:0] ba_invert,
    input wire ba_reverse,
    input wire [LANES-1:0] ba_silent,
    input wire [LANES-1:0] ba_noise,
    input wire [31:0] ba_tx_gap,
    input wire [31:0] ba_rx_gap,
    input wire ba_elastic,
    output wire [31:0] ba_errors,
    output wire [31:0] ba_drops,
    output wire [31:0] ba_skips_dropped,
    output wire [31:0] ba_skips_repeated,
    output wire [31:0] ba_overflows
);
    channel_direction #(.LANES(LANES), .SYMBOL_BITS(SYMBOL_BITS), .DEPTH(DEPTH)) ab (
        .clk(clk), .rst(rst),
        .tx_data(a_tx_data), .tx_enable(a_tx_enable), .tx_ready(a_tx_ready),
        .rx_data(b_rx_data), .rx_valid(b_rx_valid), .rx_slip(b_rx_slip),
        .seed(ab_seed), .delay(ab_delay), .skew(ab_skew), .offset(ab_offset),
        .error_rate(ab_error_rate), .error_burst(ab_error_burst), .drop_rate(ab_drop_rate),
        .stuck_zero(ab_stuck_zero), .stuck_one(ab_stuck_one), .invert(ab_invert),
        .reverse(ab_reverse), .silent(ab_silent), .noise(ab_noise),
        .tx_gap(ab_tx_gap), .rx_gap(ab_rx_gap), .elastic(ab_elastic),
        .errors(ab_errors), .drops(ab_drops), .skips_dropped(ab_skips_dropped),
        .skips_repeated(ab_skips_repeated), .overflows(ab_overflows)
    );
    channel_direction #(.LANES(LANES), .SYMBOL_BITS(SYMBOL_BITS), .DEPTH(DEPTH)) ba (
        .clk(clk), .rst(rst),
        .tx_data(b_tx_data), .tx_enable(b_tx_enable), .tx_ready(b_tx_ready),
        .rx_data(a_rx_data), .rx_valid(a_rx_valid), .rx_slip(a_rx_slip),
        .seed(~ba_seed), .delay(ba_delay), .skew(ba_skew), .offset(ba_offset),
        .error_rate(ba_error_rate), .error_burst(ba_error_burst), .drop_rate(ba_drop_rate),
        .stuck_zero(ba_stuck_zero), .stuck_one(ba_stuck_one), .invert(ba_invert),
        .reverse(ba_reverse), .silent(ba_silent), .noise(ba_noise),
        .tx_gap(ba_tx_gap), .rx_gap(ba_rx_gap), .elastic(ba_elastic),
        .errors(ba_errors), .drops(ba_drops), .skips_dropped(ba_skips_dropped),
        .skips_repeated(ba_skips_repeated), .overflows(ba_overflows)
    );
endmodule

// One direction.  Symbols stand in a ring of steps (one symbol of each lane); the receiver walks
// behind the transmitter, each lane by its own distance.
module channel_direction #(
    parameter LANES = 4,
    parameter SYMBOL_BITS = 32,
    parameter DEPTH = 16384
) (
    input wire clk,
    input wire rst,
    input wire [LANES*SYMBOL_BITS-1:0] tx_data,
    input wire [LANES-1:0] tx_enable,
    output reg tx_ready,
    output reg [LANES*SYMBOL_BITS-1:0] rx_data,
    output reg [LANES-1:0] rx_valid,
    input wire [LANES-1:0] rx_slip,

    input wire [31:0] seed,                // (reset) of all random numbers here
    input wire [15:0] delay,               // (reset) symbols, of all lanes
    input wire [LANES*16-1:0] skew,        // (reset) further symbols of each lane
    input wire [LANES*8-1:0] offset,       // (reset) bits by which the symbol boundary is late
    input wire [31:0] error_rate,          // a symbol of a lane gets an error when a random number is below
    input wire [15:0] error_burst,         // bits from the first to the last that an error may invert; 0 counts as 1
    input wire [31:0] drop_rate,           // likewise: a symbol of a lane is lost, those behind it come earlier
    input wire [LANES-1:0] stuck_zero,     // the received lane shows only zeros
    input wire [LANES-1:0] stuck_one,
    input wire [LANES-1:0] invert,         // polarity
    input wire reverse,                    // received lane i is sent lane LANES - 1 - i
    input wire [LANES-1:0] silent,         // the received lane delivers nothing; all ones: disconnected
    input wire [LANES-1:0] noise,          // the received lane delivers random bits
    input wire [31:0] tx_gap,              // tx_ready falls for a cycle when a random number is below
    input wire [31:0] rx_gap,              // elastic: the receiver takes nothing in such a cycle
    input wire elastic,                    // (reset) skip steps are dropped and repeated to make up for the gaps;
                                           // without it gaps of tx are gaps of rx_valid, and rx_gap has no effect
    output reg [31:0] errors,              // symbols with an error
    output reg [31:0] drops,
    output reg [31:0] skips_dropped,
    output reg [31:0] skips_repeated,
    output reg [31:0] overflows            // steps lost because rx_gap left them too long
);
    localparam [31:0] SKIP_WORD = 32'h6A3C96C5;
    localparam MARGIN = 16;  // steps that the elastic buffer holds beyond the delay
    localparam SB = SYMBOL_BITS;

    reg [LANES*SB-1:0] ring [0:DEPTH-1];
    reg [LANES-1:0] driven [0:DEPTH-1];
    reg [31:0] mask, head, tail, target, room;
    reg running, elastic_on, is_skip, some_skip, gap;
    reg [63:0] random [0:LANES-1];
    reg [63:0] draw, common;
    reg [15:0] lost [0:LANES-1];
    reg [15:0] distance [0:LANES-1];
    reg [7:0] late [0:LANES-1];
    reg [SB-1:0] previous [0:LANES-1];
    reg [15:0] burst [0:LANES-1];
    reg [LANES*SB-1:0] step;
    reg [LANES-1:0] enable;
    reg [SB-1:0] symbol, flips, shown;
    reg [31:0] place, most;
    reg present, dropped;
    reg [31:0] n_errors, n_drops, n_skips_dropped, n_skips_repeated, n_overflows;
    integer i, k, from;

    function [63:0] xorshift(input [63:0] seed_of);
        reg [63:0] x;
        begin
            x = seed_of ^ (seed_of << 13);
            x = x ^ (x >> 7);
            xorshift = x ^ (x << 17);
        end
    endfunction

    task put(input [LANES*SB-1:0] word, input [LANES-1:0] valid);
        begin
            if (head - tail >= room) n_overflows = n_overflows + 1;
            else begin
                ring[head & mask] = word;
                driven[head & mask] = valid;
                head = head + 1;
            end
        end
    endtask

    always @(posedge clk) begin
        if (rst) begin
            elastic_on = elastic;
            most = 0;
            for (i = 0; i < LANES; i = i + 1) begin
                distance[i] = skew[16*i +: 16];
                if ({16'd0, distance[i]} > most) most = {16'd0, distance[i]};
                late[i] = offset[8*i +: 8] % SB;
                lost[i] = 0;
                burst[i] = 0;
                previous[i] = 0;
                random[i] = xorshift({seed, ~seed} ^ (64'h9E3779B97F4A7C15 * (i + 1)));
            end
            common = xorshift({~seed, seed} ^ 64'hD1B54A32D192ED03);
            target = {16'd0, delay} + (elastic ? MARGIN : 0);
            // The smallest ring that holds everything keeps the simulator's cache warm.
            mask = 63;
            while (mask < target + most + 64 && mask < DEPTH - 1) mask = {mask[30:0], 1'b1};
            room = mask - most;
            head = most;
            tail = most;
            for (k = 0; k <= mask; k = k + 1) driven[k] = 0;
            running = 0;
            tx_ready <= 0;
            rx_valid <= 0;
            rx_data <= 0;
            n_errors = 0;
            n_drops = 0;
            n_skips_dropped = 0;
            n_skips_repeated = 0;
            n_overflows = 0;
        end else begin
            common = xorshift(common);

            // The sender's side.
            for (i = 0; i < LANES; i = i + 1) begin
                from = reverse ? LANES - 1 - i : i;
                step[SB*i +: SB] = tx_data[SB*from +: SB];
                enable[i] = tx_enable[from];
            end
            if (tx_ready) begin
                is_skip = 0;
                if (elastic_on) begin
                    // Lanes outside of the width in use send zeros.
                    is_skip = 1;
                    some_skip = 0;
                    for (i = 0; i < LANES; i = i + 1)
                        if (enable[i] && step[SB*i +: SB] == {SB/32{SKIP_WORD}}) some_skip = 1;
                        else if (enable[i] && step[SB*i +: SB] != 0) is_skip = 0;
                    is_skip = is_skip & some_skip;
                end
                if (is_skip && running && head - tail > target + 2)
                    n_skips_dropped = n_skips_dropped + 1;
                else begin
                    put(step, enable);
                    if (is_skip && running && head - tail + 2 < target) begin
                        put(step, enable);
                        n_skips_repeated = n_skips_repeated + 1;
                    end
                end
            end else if (!elastic_on) put(0, 0);
            tx_ready <= tx_gap == 0 || common[31:0] >= tx_gap;

            // The receiver's side.
            if (head - tail > target) running = 1;
            gap = !running || head == tail
                || (elastic_on && rx_gap != 0 && common[63:32] < rx_gap);
            for (i = 0; i < LANES; i = i + 1) begin
                random[i] = xorshift(random[i]);
                draw = random[i];
                present = 0;
                dropped = 0;
                flips = 0;
                if (!gap) begin
                    if (drop_rate != 0 && draw[63:32] < drop_rate) begin
                        n_drops = n_drops + 1;
                        // Symbols behind it come earlier as long as the line holds some.
                        if ({16'd0, lost[i]} + 2 < {16'd0, distance[i]} + (head - tail))
                            lost[i] = lost[i] + 1;
                        else dropped = 1;
                    end
                    place = tail - {16'd0, distance[i]} + {16'd0, lost[i]};
                    present = driven[place & mask][i] & ~dropped;
                    symbol = ring[place & mask][SB*i +: SB];
                end
                if (present) begin
                    if (invert[i]) symbol = ~symbol;
                    if (stuck_zero[i]) symbol = 0;
                    if (stuck_one[i]) symbol = {SB{1'b1}};
                    if (burst[i] != 0) begin  // the rest of an error that began before
                        flips = {SB/32{draw[31:0] ^ {draw[47:32], draw[63:48]}}};
                        if ({16'd0, burst[i]} < SB) begin
                            flips = flips & ~({SB{1'b1}} << burst[i]);
                            burst[i] = 0;
                        end else burst[i] = burst[i] - SB;
                    end
                    if (error_rate != 0 && draw[31:0] < error_rate) begin
                        n_errors = n_errors + 1;
                        draw = xorshift(draw ^ 64'h2545F4914F6CDD1D);
                        k = draw[15:0] % SB;
                        shown = ({SB/32{draw[63:32]}} | 1'b1);
                        if (error_burst < 2) shown = 1;
                        else if ({16'd0, error_burst} < SB) shown = shown & ~({SB{1'b1}} << error_burst);
                        flips = flips ^ (shown << k);
                        if (error_burst + k > SB) burst[i] = error_burst + k - SB;
                    end
                    symbol = symbol ^ flips;
                    shown = late[i] == 0 ? symbol
                        : (symbol << late[i]) | (previous[i] >> (SB - late[i]));
                    previous[i] = symbol;
                end else shown = 0;
                if (rx_slip[i]) late[i] = late[i] == 0 ? SB - 1 : late[i] - 1;
                if (noise[i]) begin
                    present = 1;
                    for (k = 0; k < SB; k = k + 32) begin
                        random[i] = xorshift(random[i]);
                        shown[k +: 32] = random[i][47:16];
                    end
                end
                rx_data[SB*i +: SB] <= shown;
                rx_valid[i] <= present & ~silent[i];
            end
            if (!gap) tail = tail + 1;
        end
        errors <= n_errors;
        drops <= n_drops;
        skips_dropped <= n_skips_dropped;
        skips_repeated <= n_skips_repeated;
        overflows <= n_overflows;
    end
endmodule

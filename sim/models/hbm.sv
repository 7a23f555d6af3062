// HBM for simulation: PORTS AXI4 slave ports onto one memory of 16-byte beats.
//
// Runtime inputs shape the timing, never the data:
//   latency   least cycles from an accepted request to its first beat or response
//   jitter    random extra cycles, 0..jitter (a power of two minus 1)
//   rate      beats a port delivers or takes in 256 cycles; 256 = one a cycle
//   stall     probability in 1/256 of holding back a beat, response or acceptance in a cycle
//   reorder   serve requests of different ids in random order (one id stays in order)
// Bursts are INCR, served whole.  A beat outside the memory answers DECERR and writes nothing; so does a write burst whose wlast
// disagrees with its length, after a message.
module hbm #(
    parameter PORTS = 1,
    parameter ID_BITS = 4,
    parameter BYTES = 1 << 20
) (
    input wire clk,
    input wire rst,
    input wire [15:0] latency,
    input wire [15:0] jitter,
    input wire [8:0] rate,
    input wire [7:0] stall,
    input wire reorder,
    input wire [31:0] seed,

    input  wire [PORTS*ID_BITS-1:0] arid,
    input  wire [PORTS*64-1:0] araddr,
    input  wire [PORTS*8-1:0] arlen,
    input  wire [PORTS-1:0] arvalid,
    output wire [PORTS-1:0] arready,
    output reg  [PORTS*ID_BITS-1:0] rid,
    output reg  [PORTS*128-1:0] rdata,
    output reg  [PORTS*2-1:0] rresp,
    output reg  [PORTS-1:0] rlast,
    output reg  [PORTS-1:0] rvalid,
    input  wire [PORTS-1:0] rready,

    input  wire [PORTS*ID_BITS-1:0] awid,
    input  wire [PORTS*64-1:0] awaddr,
    input  wire [PORTS*8-1:0] awlen,
    input  wire [PORTS-1:0] awvalid,
    output wire [PORTS-1:0] awready,
    input  wire [PORTS*128-1:0] wdata,
    input  wire [PORTS*16-1:0] wstrb,
    input  wire [PORTS-1:0] wlast,
    input  wire [PORTS-1:0] wvalid,
    output wire [PORTS-1:0] wready,
    output reg  [PORTS*ID_BITS-1:0] bid,
    output reg  [PORTS*2-1:0] bresp,
    output reg  [PORTS-1:0] bvalid,
    input  wire [PORTS-1:0] bready
);
    localparam BEATS = BYTES / 16;
    localparam [63:0] END = {32'd0, BEATS};
    localparam INDEX_BITS = $clog2(BEATS);
    localparam Q = 16;  // requests waiting per port and direction

    reg [127:0] mem [0:BEATS-1];
    // Beats written since the start lie in [low, high]; low > high: none.  What a dump has to cover.
    reg [31:0] written_low, written_high;

    // One queue entry per request, oldest at 0.
    reg [ID_BITS-1:0] r_id [0:PORTS*Q-1];
    reg [63:0] r_addr [0:PORTS*Q-1];
    reg [8:0] r_beats [0:PORTS*Q-1];
    reg [31:0] r_time [0:PORTS*Q-1];
    reg [4:0] r_count [0:PORTS-1];
    reg [ID_BITS-1:0] a_id [0:PORTS*Q-1];
    reg [63:0] a_addr [0:PORTS*Q-1];
    reg [8:0] a_beats [0:PORTS*Q-1];
    reg [4:0] a_count [0:PORTS-1];
    reg a_error [0:PORTS-1];
    reg [ID_BITS-1:0] b_id [0:PORTS*Q-1];
    reg b_error [0:PORTS*Q-1];
    reg [31:0] b_time [0:PORTS*Q-1];
    reg [4:0] b_count [0:PORTS-1];
    // The read burst being served.
    reg s_busy [0:PORTS-1];
    reg [ID_BITS-1:0] s_id [0:PORTS-1];
    reg [63:0] s_addr [0:PORTS-1];
    reg [8:0] s_beats [0:PORTS-1];
    reg [9:0] r_credit [0:PORTS-1];
    reg [9:0] w_credit [0:PORTS-1];

    reg [31:0] now;
    reg [63:0] random;
    reg [PORTS-1:0] ar_open, aw_open, w_open;
    assign arready = ar_open;
    assign awready = aw_open;
    assign wready = w_open;

    integer i, p, k, pick, b;
    reg eligible;
    reg [63:0] chance;
    reg [63:0] word;

    initial begin
        for (i = 0; i < BEATS; i = i + 1) mem[i] = 128'd0;
        written_low = BEATS;
        written_high = 0;
    end

    // State is updated in order within the cycle, for speed; only the outputs are registers of their own.
    // verilator lint_off BLKSEQ
    always @(posedge clk) begin
        // xorshift64: eight independent enough bytes a cycle
        random = random ^ (random << 13);
        random = random ^ (random >> 7);
        random = random ^ (random << 17);
        now = now + 1;
        for (p = 0; p < PORTS; p = p + 1) begin
            chance = (random << (13 * p)) | (random >> (64 - 13 * p));  // another rotation for each port
            if (r_credit[p] < 10'd256) r_credit[p] = r_credit[p] + rate;
            if (w_credit[p] < 10'd256) w_credit[p] = w_credit[p] + rate;

            // requests
            if (arvalid[p] && arready[p]) begin
                k = p * Q + {27'd0, r_count[p]};
                r_id[k] = arid[p*ID_BITS +: ID_BITS];
                r_addr[k] = araddr[p*64 +: 64];
                r_beats[k] = arlen[p*8 +: 8] + 9'd1;
                r_time[k] = now + {16'd0, latency} + {16'd0, chance[15:0] & jitter};
                r_count[p] = r_count[p] + 1;
            end
            if (awvalid[p] && awready[p]) begin
                k = p * Q + {27'd0, a_count[p]};
                a_id[k] = awid[p*ID_BITS +: ID_BITS];
                a_addr[k] = awaddr[p*64 +: 64];
                a_beats[k] = awlen[p*8 +: 8] + 9'd1;
                a_count[p] = a_count[p] + 1;
            end

            // write data goes to the oldest address
            if (wvalid[p] && wready[p]) begin
                word = a_addr[p*Q] >> 4;
                if (word < END) begin
                    for (b = 0; b < 16; b = b + 1)
                        if (wstrb[p*16+b]) mem[word[INDEX_BITS-1:0]][8*b +: 8] = wdata[p*128+8*b +: 8];
                    if (word[31:0] < written_low) written_low = word[31:0];
                    if (word[31:0] > written_high) written_high = word[31:0];
                end else a_error[p] = 1'b1;
                if (wlast[p] != (a_beats[p*Q] == 9'd1)) begin
                    $display("hbm: wlast of port %0d is not at the last beat of its burst", p);
                    a_error[p] = 1'b1;
                end
                a_addr[p*Q] = a_addr[p*Q] + 64'd16;
                a_beats[p*Q] = a_beats[p*Q] - 9'd1;
                w_credit[p] = w_credit[p] - 10'd256;
                if (wlast[p]) begin
                    k = p * Q + {27'd0, b_count[p]};
                    b_id[k] = a_id[p*Q];
                    b_error[k] = a_error[p];
                    b_time[k] = now + {16'd0, latency} + {16'd0, chance[31:16] & jitter};
                    b_count[p] = b_count[p] + 1;
                    a_error[p] = 1'b0;
                    for (i = 0; i < Q - 1; i = i + 1) begin
                        a_id[p*Q+i] = a_id[p*Q+i+1];
                        a_addr[p*Q+i] = a_addr[p*Q+i+1];
                        a_beats[p*Q+i] = a_beats[p*Q+i+1];
                    end
                    a_count[p] = a_count[p] - 1;
                end
            end

            // read data
            if (rvalid[p] && rready[p]) rvalid[p] <= 1'b0;
            if (!s_busy[p] && r_count[p] != 0) begin
                pick = -1;
                for (i = 0; i < Q; i = i + 1)
                    if (i < r_count[p] && $signed(now - r_time[p*Q+i]) >= 0) begin
                        eligible = 1'b1;
                        for (k = 0; k < i; k = k + 1)
                            if (r_id[p*Q+k] == r_id[p*Q+i]) eligible = 1'b0;
                        if (eligible && (pick < 0 ? (reorder || i == 0) : (reorder && random[(i + 7) % 64]))) pick = i;
                    end
                if (pick >= 0) begin
                    s_busy[p] = 1'b1;
                    s_id[p] = r_id[p*Q+pick];
                    s_addr[p] = r_addr[p*Q+pick];
                    s_beats[p] = r_beats[p*Q+pick];
                    for (i = 0; i < Q - 1; i = i + 1)
                        if (i >= pick) begin
                            r_id[p*Q+i] = r_id[p*Q+i+1];
                            r_addr[p*Q+i] = r_addr[p*Q+i+1];
                            r_beats[p*Q+i] = r_beats[p*Q+i+1];
                            r_time[p*Q+i] = r_time[p*Q+i+1];
                        end
                    r_count[p] = r_count[p] - 1;
                end
            end
            if (s_busy[p] && (!rvalid[p] || rready[p]) && r_credit[p] >= 10'd256 && chance[39:32] >= stall) begin
                word = s_addr[p] >> 4;
                rvalid[p] <= 1'b1;
                rid[p*ID_BITS +: ID_BITS] <= s_id[p];
                rdata[p*128 +: 128] <= word < END ? mem[word[INDEX_BITS-1:0]] : 128'd0;
                rresp[p*2 +: 2] <= word < END ? 2'd0 : 2'd3;
                rlast[p] <= s_beats[p] == 9'd1;
                r_credit[p] = r_credit[p] - 10'd256;
                s_addr[p] = s_addr[p] + 64'd16;
                s_beats[p] = s_beats[p] - 9'd1;
                if (s_beats[p] == 9'd0) s_busy[p] = 1'b0;
            end

            // write responses
            if (bvalid[p] && bready[p]) bvalid[p] <= 1'b0;
            if (b_count[p] != 0 && (!bvalid[p] || bready[p]) && chance[47:40] >= stall) begin
                pick = -1;
                for (i = 0; i < Q; i = i + 1)
                    if (i < b_count[p] && $signed(now - b_time[p*Q+i]) >= 0) begin
                        eligible = 1'b1;
                        for (k = 0; k < i; k = k + 1)
                            if (b_id[p*Q+k] == b_id[p*Q+i]) eligible = 1'b0;
                        if (eligible && (pick < 0 ? (reorder || i == 0) : (reorder && random[(i + 31) % 64]))) pick = i;
                    end
                if (pick >= 0) begin
                    bvalid[p] <= 1'b1;
                    bid[p*ID_BITS +: ID_BITS] <= b_id[p*Q+pick];
                    bresp[p*2 +: 2] <= b_error[p*Q+pick] ? 2'd3 : 2'd0;
                    for (i = 0; i < Q - 1; i = i + 1)
                        if (i >= pick) begin
                            b_id[p*Q+i] = b_id[p*Q+i+1];
                            b_error[p*Q+i] = b_error[p*Q+i+1];
                            b_time[p*Q+i] = b_time[p*Q+i+1];
                        end
                    b_count[p] = b_count[p] - 1;
                end
            end

            ar_open[p] <= r_count[p] < Q && chance[55:48] >= stall;
            aw_open[p] <= a_count[p] < Q && b_count[p] < Q / 2 && chance[63:56] >= stall;
            // The credit of the next cycle counts: what is taken then is paid for then.
            w_open[p] <= a_count[p] != 0 && b_count[p] < Q && w_credit[p] + rate >= 10'd256 && chance[23:16] >= stall;
        end

        if (rst) begin
            now = 0;
            random = {seed, ~seed} | 64'd1;
            rvalid <= 0;
            bvalid <= 0;
            ar_open <= 0;
            aw_open <= 0;
            w_open <= 0;
            for (p = 0; p < PORTS; p = p + 1) begin
                r_count[p] = 0;
                a_count[p] = 0;
                b_count[p] = 0;
                s_busy[p] = 1'b0;
                a_error[p] = 1'b0;
                r_credit[p] = 0;
                w_credit[p] = 0;
            end
        end
    end
endmodule

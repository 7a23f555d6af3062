// Self-checking bench of hbm.sv: every port writes and reads its own stripe at random and compares each beat with a copy.
// `clk` comes from outside.  Parameters of the timing come as plusargs (latency, jitter, rate, stall, reorder, seed, cycles).
// `done` rises after `cycles` cycles; `failed` tells of any difference.  Prints the beats moved, the error answers and the read
// bursts that overtook an older one.
module hbm_check #(
    parameter PORTS = 2,
    parameter BYTES = 1 << 16
) (
    input wire clk,
    output reg done,
    output reg failed
);
    localparam STRIPE = BYTES / 16 / PORTS;  // beats of a port
    localparam IDS = 16;

    reg [15:0] latency, jitter;
    reg [8:0] rate;
    reg [7:0] stall;
    reg reorder;
    reg [31:0] seed, cycles, now;
    reg rst;
    reg [PORTS*4-1:0] arid, awid;
    reg [PORTS*64-1:0] araddr, awaddr;
    reg [PORTS*8-1:0] arlen, awlen;
    reg [PORTS-1:0] arvalid, awvalid, wvalid, wlast, rready, bready;
    reg [PORTS*128-1:0] wdata;
    reg [PORTS*16-1:0] wstrb;
    wire [PORTS*4-1:0] rid, bid;
    wire [PORTS*128-1:0] rdata;
    wire [PORTS*2-1:0] rresp, bresp;
    wire [PORTS-1:0] arready, awready, wready, rlast, rvalid, bvalid;

    hbm #(.PORTS(PORTS), .ID_BITS(4), .BYTES(BYTES)) dut (
        .clk(clk), .rst(rst), .latency(latency), .jitter(jitter), .rate(rate), .stall(stall), .reorder(reorder), .seed(seed),
        .arid(arid), .araddr(araddr), .arlen(arlen), .arvalid(arvalid), .arready(arready),
        .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready),
        .awid(awid), .awaddr(awaddr), .awlen(awlen), .awvalid(awvalid), .awready(awready),
        .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready),
        .bid(bid), .bresp(bresp), .bvalid(bvalid), .bready(bready)
    );

    // A copy of the memory.  A port is in a phase of writing or of reading, so that its reads have one right answer.
    reg [127:0] copy [0:BYTES/16-1];
    reg writing [0:PORTS-1];
    integer budget [0:PORTS-1];       // requests left in the phase
    integer open [0:PORTS-1];         // requests not answered
    reg [63:0] w_addr [0:PORTS-1];
    integer w_left [0:PORTS-1];
    reg w_bad [0:PORTS*IDS-1];        // answer of the one open write of an id must be an error
    reg w_open [0:PORTS*IDS-1];
    // Reads of one id in order: a queue of four per id.
    reg [63:0] q_addr [0:PORTS*IDS*4-1];
    integer q_left [0:PORTS*IDS*4-1];
    integer q_seq [0:PORTS*IDS*4-1];
    integer q_count [0:PORTS*IDS-1];
    integer p, i, k, beats, place;
    integer reads, writes, errors, overtakes, seq_done, sequence_number;
    reg passed;
    reg [63:0] random;
    reg [63:0] word;
    reg [127:0] wide;

    function [63:0] next(input [63:0] x);
        reg [63:0] y;
        begin
            y = x ^ (x << 13);
            y = y ^ (y >> 7);
            next = y ^ (y << 17);
        end
    endfunction

    task fail(input [8*40-1:0] why);
        begin
            if (!failed) $display("hbm_check: %0s, cycle %0d port %0d", why, now, p);
            failed = 1'b1;
        end
    endtask

    integer value;
    initial begin
        latency = 4; jitter = 0; rate = 256; stall = 0; reorder = 0; seed = 1; cycles = 20000;
        if ($value$plusargs("latency=%d", value)) latency = value[15:0];
        if ($value$plusargs("jitter=%d", value)) jitter = value[15:0];
        if ($value$plusargs("rate=%d", value)) rate = value[8:0];
        if ($value$plusargs("stall=%d", value)) stall = value[7:0];
        if ($value$plusargs("reorder=%d", value)) reorder = value[0];
        if ($value$plusargs("seed=%d", value)) seed = value;
        if ($value$plusargs("cycles=%d", value)) cycles = value;
        done = 0; failed = 0; now = 0; rst = 1;
        random = {seed, 32'h1234567};
        reads = 0; writes = 0; errors = 0; overtakes = 0; seq_done = 0; sequence_number = 0; passed = 0;
        arvalid = 0; awvalid = 0; wvalid = 0; rready = 0; bready = 0; wlast = 0;
        arid = 0; awid = 0; araddr = 0; awaddr = 0; arlen = 0; awlen = 0; wdata = 0; wstrb = 0;
        for (i = 0; i < BYTES / 16; i = i + 1) copy[i] = 128'd0;
        for (p = 0; p < PORTS; p = p + 1) begin
            writing[p] = 1; budget[p] = 20; open[p] = 0; w_left[p] = 0; w_addr[p] = 0;
        end
        for (i = 0; i < PORTS * IDS; i = i + 1) begin
            w_bad[i] = 0; w_open[i] = 0; q_count[i] = 0;
        end
    end

    // verilator lint_off BLKSEQ
    always @(posedge clk) begin
        now = now + 1;
        if (now == 4) rst <= 0;
        if (now > 5) for (p = 0; p < PORTS; p = p + 1) begin
            random = next(random);
            // answers
            if (rvalid[p] && rready[p]) begin
                i = p * IDS + {28'd0, rid[p*4 +: 4]};
                if (q_count[i] == 0) fail("answer to nobody");
                else begin
                    word = q_addr[4*i] >> 4;
                    if (word < BYTES / 16) begin
                        if (rresp[p*2 +: 2] != 0) fail("read refused");
                        if (rdata[p*128 +: 128] !== copy[word[31:0]]) fail("wrong data");
                    end else begin
                        errors = errors + 1;
                        if (rresp[p*2 +: 2] != 2'd3) fail("no DECERR");
                    end
                    reads = reads + 1;
                    q_addr[4*i] = q_addr[4*i] + 64'd16;
                    q_left[4*i] = q_left[4*i] - 1;
                    if (rlast[p] != (q_left[4*i] == 0)) fail("rlast");
                    if (q_left[4*i] == 0) begin
                        seq_done = q_seq[4*i];
                        for (k = 0; k < 3; k = k + 1) begin
                            q_addr[4*i+k] = q_addr[4*i+k+1];
                            q_left[4*i+k] = q_left[4*i+k+1];
                            q_seq[4*i+k] = q_seq[4*i+k+1];
                        end
                        q_count[i] = q_count[i] - 1;
                        open[p] = open[p] - 1;
                        passed = 1'b0;
                        for (k = 0; k < IDS; k = k + 1)
                            if (q_count[p*IDS+k] != 0 && q_seq[4*(p*IDS+k)] < seq_done) passed = 1'b1;
                        overtakes = overtakes + {31'd0, passed};
                    end
                end
            end
            if (bvalid[p] && bready[p]) begin
                i = p * IDS + {28'd0, bid[p*4 +: 4]};
                if (!w_open[i]) fail("write answer to nobody");
                if ((bresp[p*2 +: 2] == 2'd3) != w_bad[i]) fail("write answer");
                errors = errors + {31'd0, w_bad[i]};
                w_open[i] = 0;
                open[p] = open[p] - 1;
            end
            // requests
            if (arvalid[p] && arready[p]) arvalid[p] <= 1'b0;
            if (awvalid[p] && awready[p]) awvalid[p] <= 1'b0;
            if (wvalid[p] && wready[p]) begin
                writes = writes + 1;
                wvalid[p] <= 1'b0;
                word = w_addr[p] >> 4;
                if (word < BYTES / 16) begin
                    wide = copy[word[31:0]];
                    for (k = 0; k < 16; k = k + 1)
                        if (wstrb[p*16+k]) wide[8*k +: 8] = wdata[p*128+8*k +: 8];
                    copy[word[31:0]] = wide;
                end
                w_addr[p] = w_addr[p] + 64'd16;
                w_left[p] = w_left[p] - 1;
            end
            if (w_left[p] != 0 && (!wvalid[p] || wready[p])) begin
                wvalid[p] <= 1'b1;
                wdata[p*128 +: 128] <= {random, next(random)};
                wstrb[p*16 +: 16] <= random[20] ? 16'hFFFF : random[36:21];
                wlast[p] <= w_left[p] == 1;
            end
            if (budget[p] == 0 && open[p] == 0 && w_left[p] == 0) begin
                writing[p] = !writing[p];
                budget[p] = 20;
            end else if (budget[p] != 0) begin
                beats = 1 + {26'd0, random[5:0] & {6{random[6]}}};
                place = STRIPE * p + ({16'd0, random[55:40]} % (STRIPE - beats + 1));
                word = {32'd0, place};
                if (random[63:59] == 0) word = BYTES / 16;
                i = p * IDS + {28'd0, random[10:7]};
                if (writing[p] && w_left[p] == 0 && !awvalid[p] && !wvalid[p] && !w_open[i]) begin
                    awvalid[p] <= 1'b1;
                    awid[p*4 +: 4] <= random[10:7];
                    awaddr[p*64 +: 64] <= word << 4;
                    awlen[p*8 +: 8] <= beats[7:0] - 8'd1;
                    w_addr[p] = word << 4;
                    w_left[p] = beats;
                    w_open[i] = 1;
                    w_bad[i] = word >= BYTES / 16;
                    open[p] = open[p] + 1;
                    budget[p] = budget[p] - 1;
                end
                if (!writing[p] && (!arvalid[p] || arready[p]) && q_count[i] < 4) begin
                    arvalid[p] <= 1'b1;
                    arid[p*4 +: 4] <= random[10:7];
                    araddr[p*64 +: 64] <= word << 4;
                    arlen[p*8 +: 8] <= beats[7:0] - 8'd1;
                    k = 4 * i + q_count[i];
                    q_addr[k] = word << 4;
                    q_left[k] = beats;
                    q_seq[k] = sequence_number;
                    sequence_number = sequence_number + 1;
                    q_count[i] = q_count[i] + 1;
                    open[p] = open[p] + 1;
                    budget[p] = budget[p] - 1;
                end
            end
            rready[p] <= stall == 0 || random[57];
            bready[p] <= stall == 0 || random[58];
        end
        if (now == cycles && !done) begin
            $display("hbm_check: reads %0d writes %0d errors %0d overtakes %0d failed %0d", reads, writes, errors, overtakes, failed);
            done <= 1;
        end
    end
endmodule

// One chip with its HBM and its host, a small machine that executes a script from a file.
// sim.testbench puts the pins of one configuration where a line says `//@`.
module host #(
    parameter INDEX = 0,    // number of the chip
    parameter FOLDERS = 0,  // 1: the files of chip i lie in <dir>/chip<i>
    parameter HBM_PORTS = 1,
    parameter ID_BITS = 1,
    parameter HBM_BYTES = 65536,
    parameter STALLS = 1
) (
    input wire clk,
    input wire rst,
    input wire go,
    output reg done,
    output reg waiting,     // at a BARRIER
    input wire meet,        // all are: go on
    //@ports
    output wire busy
);
    localparam BEATS = HBM_BYTES / 16;
    // Host script: {op 32, address 64, data 64}.
    reg [159:0] script [0:65535];
    reg [31:0] op;
    reg [63:0] address, data;
    integer step, results, beats;
    reg [31:0] waited;
    reg [31:0] total;
    string dir, name;
    reg [3:0] state;
    localparam FETCH = 4'd0, WRITE = 4'd1, READ = 4'd2, WAIT = 4'd3, RESET = 4'd4, STOP = 4'd5,
        IDLE = 4'd6, BARRIER = 4'd7, POLL = 4'd8;
    localparam POLLS = 100000;

    reg chip_rst = 1;  // from the start: what the session counts with outlives a reset
    reg [31:0] reset_left;
    reg [7:0] stall_probability;
    reg [63:0] stall_random [0:3];
    reg [STALLS-1:0] stall;
    reg [15:0] latency, jitter;
    reg [8:0] rate;
    reg [7:0] hbm_stall;
    reg reorder;
    reg [31:0] seed;
    integer value;

    reg s_awvalid, s_wvalid, s_arvalid;
    reg [63:0] s_addr;
    reg [127:0] s_wdata;
    reg [15:0] s_wstrb;
    wire s_awready, s_wready, s_arready, s_bvalid, s_rvalid, s_rlast;
    wire [1:0] s_bresp, s_rresp;
    wire [127:0] s_rdata;
    wire irq, error;
    //@wires

    celosia chip (
        .clk(clk), .rst(chip_rst), .stall(stall),
        .busy(busy), .irq(irq), .error(error),
        .s_axi_host_awid(4'd0), .s_axi_host_awaddr(s_addr), .s_axi_host_awlen(8'd0),
        .s_axi_host_awsize(3'd4),
        .s_axi_host_awburst(2'd1), .s_axi_host_awvalid(s_awvalid), .s_axi_host_awready(s_awready),
        .s_axi_host_wdata(s_wdata), .s_axi_host_wstrb(s_wstrb), .s_axi_host_wlast(1'b1),
        .s_axi_host_wvalid(s_wvalid), .s_axi_host_wready(s_wready),
        .s_axi_host_bid(), .s_axi_host_bresp(s_bresp), .s_axi_host_bvalid(s_bvalid),
        .s_axi_host_bready(1'b1),
        .s_axi_host_arid(4'd0), .s_axi_host_araddr(s_addr), .s_axi_host_arlen(8'd0),
        .s_axi_host_arsize(3'd4),
        .s_axi_host_arburst(2'd1), .s_axi_host_arvalid(s_arvalid), .s_axi_host_arready(s_arready),
        .s_axi_host_rid(), .s_axi_host_rdata(s_rdata), .s_axi_host_rresp(s_rresp),
        .s_axi_host_rlast(s_rlast),
        .s_axi_host_rvalid(s_rvalid), .s_axi_host_rready(1'b1),
        //@chip
    );

    hbm #(.PORTS(HBM_PORTS), .ID_BITS(ID_BITS), .BYTES(HBM_BYTES)) hbm (
        .clk(clk), .rst(chip_rst), .latency(latency), .jitter(jitter), .rate(rate),
        .stall(hbm_stall), .reorder(reorder), .seed(seed),
        //@model
    );

    integer i;
    initial begin
        if (!$value$plusargs("dir=%s", dir)) dir = ".";
        if (FOLDERS) dir = $sformatf("%s/chip%0d", dir, INDEX);
        latency = 40; jitter = 0; rate = 256; hbm_stall = 0; reorder = 0; seed = 1;
        if ($value$plusargs("latency=%d", value)) latency = value;
        if ($value$plusargs("jitter=%d", value)) jitter = value;
        if ($value$plusargs("rate=%d", value)) rate = value;
        if ($value$plusargs("hbm_stall=%d", value)) hbm_stall = value;
        if ($value$plusargs("reorder=%d", value)) reorder = value;
        if ($value$plusargs("seed=%d", value)) seed = value;
        seed = seed + INDEX;
        stall_probability = 0;
        if ($value$plusargs("stall=%d", value)) stall_probability = value;
        name = {dir, "/script.hex"};
        $readmemh(name, script);
        name = {dir, "/results.txt"};
        results = $fopen(name, "w");
        state = IDLE;
        step = 0;
        done = 0;
        waiting = 0;
        stall = 0;
        s_awvalid = 0; s_wvalid = 0; s_arvalid = 0;
    end

    // Random stalls of streams inside the chip.
    always @(posedge clk) begin
        if (rst) begin
            for (i = 0; i < 4; i = i + 1)
                stall_random[i] <= {seed, ~seed} ^ (64'h9E3779B97F4A7C15 * (i + 1));
            stall <= 0;
        end else if (stall_probability != 0) begin
            for (i = 0; i < 4; i = i + 1)
                stall_random[i] <= xorshift(stall_random[i]);
            for (i = 0; i < STALLS; i = i + 1)
                stall[i] <= stall_random[i % 4][8 * ((i / 4) % 8) +: 8] < stall_probability;
        end else stall <= 0;
    end

    function [63:0] xorshift(input [63:0] previous);
        reg [63:0] x;
        begin
            x = previous ^ (previous << 13);
            x = x ^ (x >> 7);
            xorshift = x ^ (x << 17);
        end
    endfunction

    // The host: one script step after the other.
    always @(posedge clk) begin
        chip_rst <= rst;
        total = rst ? 0 : total + 1;
        if (rst) begin
            s_awvalid <= 0; s_wvalid <= 0; s_arvalid <= 0;
        end else case (state)
        IDLE: if (go) state = FETCH;
        FETCH: begin
            {op, address, data} = script[step];
            step = step + 1;
            case (op)
            0: begin
                $fdisplay(results, "END %0d", total);
                $fclose(results);
                done <= 1;
                state = STOP;
            end
            1: begin
                s_addr <= {address[63:4], 4'd0};
                s_wdata <= {4{data[31:0]}};
                s_wstrb <= 16'd15 << address[3:0];
                s_awvalid <= 1;
                s_wvalid <= 1;
                state = WRITE;
            end
            2: begin
                s_addr <= address;
                beats = data[31:0];
                s_arvalid <= 1;
                state = READ;
            end
            3: begin
                waited = 0;
                state = WAIT;
            end
            4: begin
                name = $sformatf("%s/hbm_%0d.hex", dir, data);
                $readmemh(name, hbm.mem);
                hbm.written_low = BEATS;
                hbm.written_high = 0;
            end
            5: begin
                name = $sformatf("%s/dump_%0d", dir, data);
                $fdisplay(results, "HBM %0d %0d", hbm.written_low, hbm.written_high);
                if (hbm.written_low <= hbm.written_high)
                    $writememh({name, "_hbm.hex"}, hbm.mem, hbm.written_low, hbm.written_high);
                //@dumps
            end
            6: begin
                reset_left = data[31:0];
                chip_rst <= 1;
                state = RESET;
            end
            7: begin
                stall_probability = data[7:0];
            end
            8: begin
                waiting <= 1;
                state = BARRIER;
            end
            9: begin
                s_addr <= {address[63:4], 4'd0};
                s_arvalid <= 1;
                waited = 0;
                state = POLL;
            end
            default: begin
                $fdisplay(results, "BAD %0d", op);
                done <= 1;
                state = STOP;
            end
            endcase
        end
        WRITE: begin
            if (s_awready) s_awvalid <= 0;
            if (s_wready) s_wvalid <= 0;
            if (s_bvalid) begin
                if (s_bresp != 0) $fdisplay(results, "WRITE_ERROR %h %0d", address, s_bresp);
                state = FETCH;
            end
        end
        READ: begin
            if (s_arready) s_arvalid <= 0;
            if (s_rvalid) begin
                $fdisplay(results, "R %h %0d %h", s_addr, s_rresp, s_rdata);
                beats = beats - 1;
                if (beats == 0) state = FETCH;
                else begin
                    s_addr <= s_addr + 64'd16;
                    s_arvalid <= 1;
                end
            end
        end
        WAIT: begin
            waited = waited + 1;
            if (!busy || waited >= data[31:0]) begin
                $fdisplay(results, "WAIT %0d %0d %0d", waited, busy, error);
                state = FETCH;
            end
        end
        RESET: begin
            reset_left = reset_left - 1;
            chip_rst <= reset_left != 0;
            if (reset_left == 0) state = FETCH;
        end
        POLL: begin
            if (s_arready) s_arvalid <= 0;
            if (s_rvalid) begin
                waited = waited + 1;
                value = s_rdata[8 * address[3:0] +: 32];
                if ((value & data[63:32]) == data[31:0]) state = FETCH;
                else if (waited == POLLS) begin
                    $fdisplay(results, "POLL_FAILED %h %h", address, value);
                    state = FETCH;
                end else s_arvalid <= 1;
            end
        end
        BARRIER: if (meet) begin
            waiting <= 0;
            state = FETCH;
        end
        default: ;
        endcase
    end
endmodule

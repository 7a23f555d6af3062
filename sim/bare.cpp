// The same Verilator model as under cocotb, driven by a bare loop: what the simulation costs without Python.
// Arguments are the plusargs of the testbench.  Prints the cycles it took.
#include <cstdio>

#include "Vtop.h"
#include "verilated.h"

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    Vtop top;
    top.clk = 0;
    top.rst = 1;
    top.go = 0;
    unsigned long cycles = 0;
    while (!top.done && cycles < 2000000000UL) {
        if (cycles == 4) {
            top.rst = 0;
            top.go = 1;
        }
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        ++cycles;
    }
    top.final();
    std::printf("%lu\n", cycles);
    return top.done ? 0 : 1;
}

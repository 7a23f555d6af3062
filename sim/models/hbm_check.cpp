// Clock for hbm_check.sv under Verilator.  Prints the seconds of the run.
#include <chrono>
#include <cstdio>

#include "Vhbm_check.h"
#include "verilated.h"

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    Vhbm_check top;
    const auto start = std::chrono::steady_clock::now();
    while (!top.done) {
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("seconds %f\n", took.count());
    return top.failed ? 1 : 0;
}

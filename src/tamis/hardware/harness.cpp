// Runs a circuit that Verilator has compiled. Reads documents from standard input, each as its
// length (4 bytes, little-endian) and its bytes. Writes for each its status (1 byte), the cycles
// from its first byte to its end (8 bytes, little-endian) and its match bits (BITS bytes).
// Arguments: the percentage of cycles without input, a seed, and a file for waveforms.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "Vtamis.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

static Vtamis *circuit;
static uint64_t cycles;
#if VM_TRACE
static VerilatedVcdC *waveforms;
#endif

static std::vector<uint8_t> bits;

static void write_answer(uint64_t taken) {
    std::putchar(circuit->status);
    std::fwrite(&taken, sizeof taken, 1, stdout);
    std::fwrite(bits.data(), 1, bits.size(), stdout);
    std::fflush(stdout);
    bits.clear();
}

// A clock cycle. Returns whether the input was taken; sets `answered` when a read-out is over.
static bool step(bool &answered) {
    circuit->clk = 0;
    circuit->eval();
    bool taken = circuit->valid && circuit->ready;
    answered = false;
    if (circuit->match_valid) {
        for (int output = 0; output < OUTPUTS; output++) {
            bits.push_back(circuit->match >> output & 1);
        }
        answered = circuit->match_last;
    }
    if (answered) write_answer(cycles);
#if VM_TRACE
    if (waveforms) waveforms->dump(2 * cycles);
#endif
    circuit->clk = 1;
    circuit->eval();
#if VM_TRACE
    if (waveforms) waveforms->dump(2 * cycles + 1);
#endif
    cycles++;
    return taken;
}

int main(int argc, char **argv) {
    int gaps = argc > 1 ? std::atoi(argv[1]) : 0;
    std::mt19937 random(argc > 2 ? std::atoi(argv[2]) : 0);
    Verilated::commandArgs(argc, argv);
    circuit = new Vtamis;
#if VM_TRACE
    if (argc > 3 && argv[3][0] != '+') {
        Verilated::traceEverOn(true);
        waveforms = new VerilatedVcdC;
        circuit->trace(waveforms, 99);
        waveforms->open(argv[3]);
    }
#endif
    uint64_t pending = 0;
    bool answered;
    auto run = [&] {
        bool taken = step(answered);
        pending -= answered;
        return taken;
    };
    circuit->valid = circuit->finish = 0;
    circuit->reset = 1;
    for (int cycle = 0; cycle < 64; cycle++) step(answered);
    circuit->reset = 0;
    for (int cycle = 0; cycle < 64; cycle++) step(answered);
    bits.clear();
    cycles = 0;
    uint32_t length;
    std::vector<uint8_t> document;
    while (std::fread(&length, sizeof length, 1, stdin) == 1) {
        document.resize(length);
        if (std::fread(document.data(), 1, length, stdin) != length) return 1;
        pending++;
        for (size_t place = 0; place <= length;) {
            circuit->valid = gaps == 0 || int(random() % 100) >= gaps;
            circuit->finish = place == length;
            circuit->data = place < length ? document[place] : 0;
            place += run();
        }
    }
    circuit->valid = circuit->finish = 0;
    for (int cycle = 0; pending && cycle < (1 << 20); cycle++) run();
    circuit->final();
#if VM_TRACE
    if (waveforms) waveforms->close();
#endif
    return pending != 0;
}

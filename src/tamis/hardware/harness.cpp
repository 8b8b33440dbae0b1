// Runs a circuit that Verilator has compiled. Reads documents from standard input, each as its
// length (4 bytes, little-endian) and its bytes. Writes for each its status (1 byte), the cycles
// from its first byte to its end (8 bytes, little-endian) and its match bits (BITS bytes).
// Arguments: the percentage of cycles without input, a seed, and a file for waveforms.
#include <algorithm>
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
static uint64_t cycles, time_of_dump;
#if VM_TRACE
static VerilatedVcdC *waveforms;
#endif

static std::vector<uint8_t> bits;
static bool started; // after the reset; before it, outputs may be anything

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
    if (circuit->match_valid && started) {
        for (int output = 0; output < OUTPUTS; output++) {
#if OUTPUTS > 64
            bits.push_back(circuit->match[output / 32] >> output % 32 & 1);
#else
            bits.push_back(circuit->match >> output & 1);
#endif
        }
        answered = circuit->match_last;
    }
    if (answered) write_answer(cycles);
#if VM_TRACE
    if (waveforms) waveforms->dump(time_of_dump++);
#endif
    circuit->clk = 1;
    circuit->eval();
#if VM_TRACE
    if (waveforms) waveforms->dump(time_of_dump++);
#endif
    cycles++;
    return taken;
}

// What the circuit is offered in a cycle: the bytes of a document from `begin` to `end`.
struct Beat {
    size_t begin, end;
    bool finish, over;
#if BYTES > 1
    int lane;
#endif

    Beat(size_t from, size_t length, int gaps, std::mt19937 &random) : begin(from), end(from) {
        over = done;
        if (over) { done = false; return; }
#if BYTES > 1
        lane = gaps || from == 0 ? random() % BYTES : 0;
        size_t most = BYTES - lane;
        if (gaps) most = random() % (most + 1);
        end = std::min(length, begin + most);
        finish = end == length && (!gaps || random() % 2);
#else
        finish = begin == length;
        end = begin + !finish;
#endif
        done = finish;
    }

    void offer(const std::vector<uint8_t> &document) {
        circuit->finish = finish;
#if BYTES > 1
        uint64_t data = 0;
        for (size_t place = begin; place < end; place++) {
            data |= uint64_t(document[place]) << 8 * (lane + place - begin);
        }
        circuit->data = data;
        circuit->keep = ((1 << (end - begin)) - 1) << lane;
#else
        circuit->data = finish ? 0 : document[begin];
#endif
    }

    static bool done;
};
bool Beat::done;

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
    step(answered);
    circuit->reset = 0;
    do step(answered); while (!circuit->ready);
    started = true;
    cycles = 0;
    uint32_t length;
    std::vector<uint8_t> document;
    while (std::fread(&length, sizeof length, 1, stdin) == 1) {
        document.resize(length);
        if (std::fread(document.data(), 1, length, stdin) != length) return 1;
        pending++;
        for (Beat beat(0, length, gaps, random); !beat.over;) {
            circuit->valid = gaps == 0 || int(random() % 100) >= gaps;
            beat.offer(document);
            if (run()) beat = Beat(beat.end, length, gaps, random);
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

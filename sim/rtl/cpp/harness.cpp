// Drives the simulated core: clock, register port, memory, run loop. A C interface for ctypes.
//
// Each cycle the core settles with the clock low, when its outputs are sampled, and then gets a
// rising edge, when its registers take their new values from the inputs of the cycle.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "model.h"
#include "timeline.h"

namespace vitral {

constexpr unsigned kBeat = Model::kBeat;
constexpr unsigned kResetCycles = 8;
constexpr unsigned kAnswerCycles = 10000;  // that a register access may take

// What `vitral_run` returns; same values as `_End` in simulator.py.
enum End : int { kDone = 0, kLimit = 1, kQuiet = 2, kProtocol = 3, kNoAnswer = 4 };

class Harness {
public:
    Memory<kBeat> memory;
    Timeline timeline;
    std::vector<Array> arrays;
    std::string error;
    uint64_t cycle = 0;
    uint64_t signature = 0;  // of all outputs in every cycle; 0 when nobody watches

    Harness() {
        arrays = m_model.arrays();
        timeline.states = m_model.states();
        timeline.status = m_model.status();
        std::memset(m_out.wdata, 0, kBeat);
    }

    void reset() {
        memory.reset();
        apply();
        m_top->s_axi_awvalid = m_top->s_axi_wvalid = m_top->s_axi_arvalid = 0;
        m_top->s_axi_bready = m_top->s_axi_rready = 0;
        m_top->aresetn = 0;
        for (unsigned i = 0; i < kResetCycles; ++i) {
            low();
            clock_high(true);
            memory.reset();
            apply();
        }
        m_top->aresetn = 1;
        memory.error.clear();
        error.clear();
        step();
    }

    End write(uint32_t address, uint32_t value) {
        m_top->s_axi_awaddr = address;
        m_model.touch();
        m_top->s_axi_wdata = value;
        m_top->s_axi_wstrb = 0xF;
        m_top->s_axi_awvalid = m_top->s_axi_wvalid = m_top->s_axi_bready = 1;
        for (unsigned i = 0; i < kAnswerCycles; ++i) {
            low();
            const bool aw = m_top->s_axi_awvalid && m_top->s_axi_awready;
            const bool w = m_top->s_axi_wvalid && m_top->s_axi_wready;
            const bool b = m_top->s_axi_bvalid;
            high(true);
            if (aw) m_top->s_axi_awvalid = 0;
            if (w) m_top->s_axi_wvalid = 0;
            if (b) {
                m_top->s_axi_bready = 0;
                return kDone;
            }
        }
        return no_answer("write", address);
    }

    End read(uint32_t address, uint32_t* value) {
        m_model.touch();
        m_top->s_axi_araddr = address;
        m_top->s_axi_arvalid = m_top->s_axi_rready = 1;
        for (unsigned i = 0; i < kAnswerCycles; ++i) {
            low();
            const bool ar = m_top->s_axi_arvalid && m_top->s_axi_arready;
            const bool r = m_top->s_axi_rvalid;
            if (r) *value = m_top->s_axi_rdata;
            high(true);
            if (ar) m_top->s_axi_arvalid = 0;
            if (r) {
                m_top->s_axi_rready = 0;
                return kDone;
            }
        }
        return no_answer("read", address);
    }

    // Until the interrupt, the cycle limit, `quiet` cycles without bus traffic, or a broken rule.
    End run(uint64_t cycles, uint64_t quiet) {
        m_model.touch();
        m_answered = true;
        const uint64_t end = cycle + cycles;
        uint64_t since = cycle;
        while (cycle < end) {
            low();
            const bool irq = m_top->irq;
            if (timeline.active()) {
                const bool fresh = m_model.probe(m_answered);
                timeline.sample(fresh, memory.read_beats, memory.write_beats);
            }
            high(false);
            if (irq) return memory.error.empty() ? kDone : kProtocol;
            if (memory.activity > since) since = memory.activity;
            if (cycle - since >= quiet) return kQuiet;
            if (!memory.error.empty()) return kProtocol;
            if (!m_answered) compute(std::min(end, since + quiet - 1));
        }
        return kLimit;
    }

    void watch() { signature = 0xCBF29CE484222325; }

    bool open_trace(const char* path) { return m_model.open_trace(path); }
    void close_trace() { m_model.close_trace(); }

private:
    Model m_model;
    Model::Top* const m_top = m_model.top();
    Outputs<kBeat> m_out{};
    bool m_fresh = true;  // whether `m_out` has to be sampled
    bool m_answered = true;  // whether the memory's signals may differ from those of a cycle ago

    void step() {
        low();
        high(true);
    }

    // Clocks up to cycle `end` as long as nothing happens at the port, with signals as they are.
    void compute(uint64_t end) {
        if (signature || timeline.keeps() || m_fresh) return;
        end = std::min(end, memory.rests_until(m_out));
        const uint64_t start = cycle;
        const bool probing = timeline.active();
        while (cycle < end && !m_model.news(probing)) clock_high(false);
        timeline.pass(cycle - start);
    }

    void low() { m_fresh |= m_model.settle(cycle); }

    // `asked` says that inputs besides the memory's may have changed.
    void high(bool asked) {
        if (m_fresh) sample();
        m_fresh = false;
        if (signature) sign();
        const bool answers = memory.edge(m_out, cycle);
        clock_high(asked | m_answered);
        if (answers) apply();
        m_answered = answers;
    }

    void clock_high(bool changed) {
        m_model.edge(cycle, changed);
        ++cycle;
    }

    void mix(uint64_t value) {
        signature = (signature ^ value) * 0x100000001B3;
        signature ^= signature >> 29;
    }

    void sign() {
        mix(m_out.arvalid | m_out.awvalid << 1 | m_out.wvalid << 2 | m_out.rready << 3
            | m_out.bready << 4 | (m_top->irq ? 32 : 0));
        if (m_out.arvalid) sign(m_out.ar);
        if (m_out.awvalid) sign(m_out.aw);
        if (!m_out.wvalid) return;
        mix(m_out.wstrb << 1 | m_out.wlast);
        for (unsigned i = 0; i < kBeat; ++i)
            if (m_out.wstrb >> i & 1) mix(i << 8 | m_out.wdata[i]);
    }

    void sign(const Address& a) {
        mix(a.address);
        mix(a.attributes ^ static_cast<uint64_t>(a.len) << 48);
    }

    void sample() {
        m_out.arvalid = m_top->m_axi_arvalid;
        m_out.awvalid = m_top->m_axi_awvalid;
        m_out.wvalid = m_top->m_axi_wvalid;
        m_out.rready = m_top->m_axi_rready;
        m_out.bready = m_top->m_axi_bready;
        if (m_out.arvalid) {
            m_out.ar = {m_top->m_axi_araddr,
                        attributes(m_top->m_axi_arid, m_top->m_axi_arlock, m_top->m_axi_arcache,
                                   m_top->m_axi_arprot, m_top->m_axi_arqos, m_top->m_axi_arregion,
                                   m_top->m_axi_aruser),
                        byte(m_top->m_axi_arlen), byte(m_top->m_axi_arsize),
                        byte(m_top->m_axi_arburst)};
        }
        if (m_out.awvalid) {
            m_out.aw = {m_top->m_axi_awaddr,
                        attributes(m_top->m_axi_awid, m_top->m_axi_awlock, m_top->m_axi_awcache,
                                   m_top->m_axi_awprot, m_top->m_axi_awqos, m_top->m_axi_awregion,
                                   m_top->m_axi_awuser),
                        byte(m_top->m_axi_awlen), byte(m_top->m_axi_awsize),
                        byte(m_top->m_axi_awburst)};
        }
        if (m_out.wvalid) {
            m_out.wlast = m_top->m_axi_wlast;
            m_out.wstrb = m_top->m_axi_wstrb;
            std::memcpy(m_out.wdata, &m_top->m_axi_wdata, kBeat);
        }
    }

    static uint8_t byte(uint32_t value) { return static_cast<uint8_t>(value); }

    static uint64_t attributes(uint64_t id, uint64_t lock, uint64_t cache, uint64_t prot,
                               uint64_t qos, uint64_t region, uint64_t user) {
        return id | lock << 8 | cache << 12 | prot << 16 | qos << 20 | region << 24 | user << 32;
    }

    void apply() {
        const Inputs<kBeat>& in = memory.in;
        m_top->m_axi_arready = in.arready;
        m_top->m_axi_awready = in.awready;
        m_top->m_axi_wready = in.wready;
        m_top->m_axi_rvalid = in.rvalid;
        m_top->m_axi_bvalid = in.bvalid;
        if (in.rvalid) {
            m_top->m_axi_rlast = in.rlast;
            m_top->m_axi_rresp = in.rresp;
            std::memcpy(&m_top->m_axi_rdata, in.rdata, kBeat);
        }
        if (in.bvalid) m_top->m_axi_bresp = in.bresp;
    }

    End no_answer(const char* what, uint32_t address) {
        char text[96];
        std::snprintf(text, sizeof text, "register port: no answer to a %s of %#x in %u cycles",
                      what, address, kAnswerCycles);
        error = text;
        return kNoAnswer;
    }
};

}  // namespace vitral

using vitral::Harness;

#pragma GCC visibility push(default)
extern "C" {

Harness* vitral_create() { return new Harness; }
void vitral_destroy(Harness* h) { delete h; }
void vitral_reset(Harness* h) { h->reset(); }
unsigned vitral_beat_bytes() { return vitral::kBeat; }

void vitral_attach(Harness* h, uint8_t* data, uint64_t base, uint64_t size) {
    h->memory.attach(data, base, size);
}

void vitral_configure(Harness* h, const vitral::Settings* settings) {
    h->memory.configure(*settings);
}

void vitral_fail(Harness* h, const vitral::Range* ranges, uint64_t range_count,
                 const uint64_t* reads, uint64_t read_count, const uint64_t* writes,
                 uint64_t write_count) {
    h->memory.fail({ranges, ranges + range_count}, {reads, reads + read_count},
                   {writes, writes + write_count});
}

int vitral_write(Harness* h, uint32_t address, uint32_t value) { return h->write(address, value); }
int vitral_read(Harness* h, uint32_t address, uint32_t* value) { return h->read(address, value); }
int vitral_run(Harness* h, uint64_t cycles, uint64_t quiet) { return h->run(cycles, quiet); }
uint64_t vitral_cycle(Harness* h) { return h->cycle; }
int vitral_bus_idle(Harness* h) { return h->memory.idle(); }
unsigned vitral_reads_open(Harness* h) { return h->memory.reads_open(); }
unsigned vitral_writes_open(Harness* h) { return h->memory.writes_open(); }
uint64_t vitral_read_beats(Harness* h) { return h->memory.read_beats; }
uint64_t vitral_write_beats(Harness* h) { return h->memory.write_beats; }

const char* vitral_error(Harness* h) {
    return h->memory.error.empty() ? h->error.c_str() : h->memory.error.c_str();
}

uint64_t vitral_array_count(Harness* h) { return h->arrays.size(); }

const char* vitral_array(Harness* h, uint64_t n, void** data, uint64_t* entry_bytes,
                         uint64_t* depth) {
    const vitral::Array& array = h->arrays[n];
    *data = array.data;
    *entry_bytes = array.entry_bytes;
    *depth = array.depth;
    return array.name.c_str();
}

int vitral_timeline_start(Harness* h, const vitral::Mark* marks, uint64_t count, int keep) {
    h->timeline.start({marks, marks + count}, keep, h->memory.read_beats, h->memory.write_beats);
    return h->timeline.available();
}

void vitral_timeline_stop(Harness* h) { h->timeline.stop(); }

const vitral::Mark* vitral_timeline_marks(Harness* h, uint64_t* count) {
    *count = h->timeline.marks.size();
    return h->timeline.marks.data();
}

const vitral::Change* vitral_timeline_changes(Harness* h, uint64_t* count) {
    *count = h->timeline.changes.size();
    return h->timeline.changes.data();
}

const vitral::Traffic* vitral_timeline_traffic(Harness* h, uint64_t* count) {
    *count = h->timeline.traffic.size();
    return h->timeline.traffic.data();
}

void vitral_watch(Harness* h) { h->watch(); }
uint64_t vitral_signature(Harness* h) { return h->signature; }

int vitral_trace_open(Harness* h, const char* path) { return h->open_trace(path); }
void vitral_trace_close(Harness* h) { h->close_trace(); }

}  // extern "C"
#pragma GCC visibility pop

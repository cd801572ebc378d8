// The simulated core as the harness sees it: ports, clock, memories, waveform.
//
// VITRAL_NATIVE: the class that sim/rtl/netlist writes; otherwise Verilator's.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#if VITRAL_NATIVE
#include "core.h"
#else
#include "Vcore.h"
#include "verilated.h"
#include "verilated_syms.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE_VCD
#include "verilated_vcd_c.h"
#endif
#endif

namespace vitral {

struct Array {  // an on-chip memory of the model
    std::string name;
    void* data;
    uint64_t entry_bytes;
    uint64_t depth;
};

#if VITRAL_NATIVE

class Model {
public:
    using Top = Core;
    static constexpr unsigned kBeat = Core::kBeat;

    Top* top() { return m_top.get(); }

    // Gives the outputs their values; says whether any may have changed.
    bool settle(uint64_t) { return m_top->settle(); }
    // A rising edge; `changed` says whether any input may differ from that of the cycle before.
    void edge(uint64_t, bool changed) {
        if (changed) m_top->look();
        m_top->tick();
    }
    void touch() { m_top->touch(); }

    // Whether an output, or when `probing` what `probe` shows, may have changed, inputs being the same.
    bool news(bool probing) const { return m_top->news(probing); }

    // What the state registers and the status register show in this cycle; says whether that may
    // have changed. `changed` says whether any input may have.
    bool probe(bool changed) { return m_top->probe(changed); }
    std::array<const uint32_t*, 3> states() {
        return {&m_top->load_state, &m_top->compute_state, &m_top->store_state};
    }
    const uint32_t* status() { return &m_top->status; }

    std::vector<Array> arrays() {
        std::vector<Array> found;
        m_top->memories([&](const char* name, void* data, uint64_t bytes, uint64_t depth) {
            found.push_back({name, data, bytes, depth});
        });
        return found;
    }

    bool open_trace(const char*) { return false; }
    void close_trace() {}

private:
    std::unique_ptr<Top> m_top = std::make_unique<Top>();
};

#else

class Model {
public:
    using Top = Vcore;
    static constexpr unsigned kBeat = sizeof(Vcore::m_axi_rdata);

    ~Model() {
        // The model's parts unregister with this thread's context, by default the newest one's.
        Verilated::threadContextp(&m_context);
        close_trace();
        m_top->final();
    }

    Top* top() { return m_top.get(); }

    void touch() {}

    bool settle(uint64_t cycle) {
        m_top->aclk = 0;
        m_top->eval();
        dump(10 * cycle);
        return true;
    }

    void edge(uint64_t cycle, bool) {
        m_top->aclk = 1;
        m_top->eval();
        dump(10 * cycle + 5);
    }

    bool news(bool) const { return true; }
    bool probe(bool) { return true; }
    std::array<const uint32_t*, 3> states() {
        return {word("load_state"), word("compute_state"), word("store_state")};
    }
    const uint32_t* status() { return word("status"); }

    std::vector<Array> arrays() {
        std::vector<Array> found;
        each_variable([&](const char* scope, const char* name, const VerilatedVar& var) {
            if (var.udims() != 1) return;
            found.push_back({std::string{scope} + "." + name, var.datap(), var.entSize(),
                             static_cast<uint64_t>(var.elements(1))});
        });
        return found;
    }

    bool open_trace(const char* path) {
#if VM_TRACE
        close_trace();
        m_context.traceEverOn(true);
        m_trace = std::make_unique<Trace>();
        m_top->trace(m_trace.get(), 99);
        m_trace->open(path);
        return m_trace->isOpen();
#else
        (void)path;
        return false;
#endif
    }

    void close_trace() {
#if VM_TRACE
        if (m_trace) m_trace->close();
        m_trace.reset();
#endif
    }

private:
    VerilatedContext m_context;
    std::unique_ptr<Top> m_top = std::make_unique<Top>(&m_context, "core");
#if VM_TRACE
#if VM_TRACE_FST
    using Trace = VerilatedFstC;
#else
    using Trace = VerilatedVcdC;
#endif
    std::unique_ptr<Trace> m_trace;
#endif

    template <class Visitor>
    void each_variable(Visitor&& visit) {
        const VerilatedScopeNameMap* scopes = m_context.scopeNameMap();
        for (const auto& scope : *scopes) {
            if (!scope.second->varsp()) continue;
            for (const auto& item : *scope.second->varsp())
                visit(scope.first, item.first, item.second);
        }
    }

    // A public variable of 32 bits; null when there is none of that name.
    const uint32_t* word(const std::string& wanted) {
        const uint32_t* found = nullptr;
        each_variable([&](const char*, const char* name, const VerilatedVar& var) {
            if (!var.udims() && wanted == name) found = static_cast<const uint32_t*>(var.datap());
        });
        return found;
    }

    void dump(uint64_t time) {
#if VM_TRACE
        if (m_trace) m_trace->dump(time);
#else
        (void)time;
#endif
    }
};

#endif

}  // namespace vitral

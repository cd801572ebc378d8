// The memory behind the core's AXI4 port, exact in cycles.
//
// One read and one write channel, one beat per cycle each, answers in order. The memory sees the
// port's signals of a cycle (`Outputs`) and decides its own for the next (`Inputs`), as registers
// do. Writes reach the host's buffer when their B response is given, no earlier: a core that reads
// before it was told that its data arrived reads the old bytes.

#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace vitral {

constexpr unsigned kPage = 4096;

enum Response : uint8_t { kOkay = 0, kSlaveError = 2, kDecodeError = 3 };

// Same layout as `_Settings` in simulator.py.
struct Settings {
    uint64_t latency;
    uint64_t write_latency;
    uint64_t seed;
    uint32_t outstanding;
    uint32_t stall_threshold;  // a channel stalls when 12 random bits are below; 0: never
    uint32_t burst_beats;
    uint32_t reserved;
};

struct Range {
    uint64_t low;
    uint64_t high;
};

// An address phase; all that must stay while VALID waits for READY.
struct Address {
    uint64_t address;
    uint64_t attributes;  // id, lock, cache, prot, qos, region, user: not interpreted
    uint8_t len;
    uint8_t size;
    uint8_t burst;

    bool operator==(const Address& o) const {
        return address == o.address && attributes == o.attributes && len == o.len
               && size == o.size && burst == o.burst;
    }
};

template <unsigned kBeat>
struct Outputs {  // of the core, in one cycle
    bool arvalid, awvalid, wvalid, wlast, rready, bready;
    Address ar, aw;
    uint64_t wstrb;
    uint8_t wdata[kBeat];
};

template <unsigned kBeat>
struct Inputs {  // of the core, in the next cycle
    bool arready, awready, wready, rvalid, rlast, bvalid;
    uint8_t rresp, bresp;
    uint8_t rdata[kBeat];
};

template <unsigned kBeat>
class Memory {
public:
    Inputs<kBeat> in{};
    std::string error;  // first broken rule of the protocol
    uint64_t activity = 0;  // cycle of the last handshake
    uint64_t read_beats = 0;
    uint64_t write_beats = 0;

    void attach(uint8_t* data, uint64_t base, uint64_t size) {
        m_data = data;
        m_base = base;
        m_size = size;
    }

    void configure(const Settings& settings) {
        m_wake = 0;
        m_settings = settings;
        m_random = settings.seed * 0x9E3779B97F4A7C15ull + 0x1234567;
        m_read_count = m_write_count = 0;
    }

    void fail(std::vector<Range> ranges, std::vector<uint64_t> reads,
              std::vector<uint64_t> writes) {
        m_ranges = std::move(ranges);
        m_fail_reads = std::move(reads);
        m_fail_writes = std::move(writes);
    }

    void reset() {
        m_wake = 0;
        in = Inputs<kBeat>{};
        m_reads.clear();
        m_writes.clear();
        m_answers.clear();
        m_early = false;
        m_held_ar = m_held_aw = m_held_w = false;
        m_reads_open = m_writes_open = 0;
    }

    bool idle() const { return !m_reads_open && !m_writes_open && !m_early; }
    unsigned reads_open() const { return m_reads_open; }
    unsigned writes_open() const { return m_writes_open; }

    // The first cycle in which anything may happen here if the core goes on asking what it asks now.
    uint64_t rests_until(const Outputs<kBeat>& out) const {
        return out.arvalid | out.awvalid | out.wvalid ? 0 : m_wake;
    }

    // One rising clock edge; says whether `in` may have changed.
    bool edge(const Outputs<kBeat>& out, uint64_t cycle) {
        if (cycle < rests_until(out)) return false;
        if (m_held_ar | m_held_aw | m_held_w) check_held(out, cycle);
        hold(out);
        uint64_t stalls = m_settings.stall_threshold ? draw() : 0;
        read_side(out, cycle, stalls);
        write_side(out, cycle, stalls);
        m_wake = wake();
        return true;
    }

private:
    struct Read {
        uint64_t address;
        uint64_t ready;  // first cycle in which a beat may be on the bus
        unsigned beats;
        bool fails;
    };
    struct Beat {
        uint64_t strobe;
        uint8_t data[kBeat];
    };
    struct Write {
        uint64_t address;
        unsigned beats;
        bool fails;
        std::vector<Beat> data;
    };
    struct Answer {
        uint64_t ready;
        Write write;
    };

    uint8_t* m_data = nullptr;
    uint64_t m_base = 0;
    uint64_t m_size = 0;
    Settings m_settings{};
    std::vector<Range> m_ranges;
    std::vector<uint64_t> m_fail_reads, m_fail_writes;
    uint64_t m_random = 1;
    uint64_t m_wake = 0;  // first cycle in which something happens even if the core asks nothing
    uint64_t m_read_count = 0, m_write_count = 0;
    std::deque<Read> m_reads;
    std::deque<Write> m_writes;
    std::deque<Answer> m_answers;
    std::vector<std::vector<Beat>> m_spare;  // buffers of finished bursts, for reuse
    unsigned m_reads_open = 0, m_writes_open = 0;
    bool m_early = false;  // a W beat came before its AW
    bool m_early_last = false;
    Beat m_early_beat{};
    bool m_held_ar = false, m_held_aw = false, m_held_w = false;
    Address m_ar{}, m_aw{};
    Beat m_w{};
    bool m_w_last = false;

    uint64_t draw() {  // xorshift64
        m_random ^= m_random << 13;
        m_random ^= m_random >> 7;
        m_random ^= m_random << 17;
        return m_random;
    }

    // Channels take their 12 bits at shifts 0..4 of the cycle's random word.
    bool stalls(uint64_t word, unsigned channel) const {
        return ((word >> (12 * channel)) & 0xFFF) < m_settings.stall_threshold;
    }

    // `m_wake` after an edge: until then, the memory's signals stay unless the core wants something.
    uint64_t wake() const {
        if (m_settings.stall_threshold || in.rvalid || in.bvalid || m_held_ar || m_held_aw
            || m_held_w)
            return 0;
        uint64_t first = ~0ull;
        if (!m_reads.empty()) first = m_reads.front().ready - 1;
        if (!m_answers.empty()) first = std::min(first, m_answers.front().ready - 1);
        return first;
    }

    void broken(uint64_t cycle, const char* format, ...) {
        if (!error.empty()) return;
        char text[160], line[200];
        va_list values;
        va_start(values, format);
        std::vsnprintf(text, sizeof text, format, values);
        va_end(values);
        std::snprintf(line, sizeof line, "%s (cycle %llu)", text,
                      static_cast<unsigned long long>(cycle));
        error = line;
    }

    void check_held(const Outputs<kBeat>& out, uint64_t cycle) {
        if (m_held_ar && !(out.arvalid && out.ar == m_ar))
            broken(cycle, "AR changed before ARREADY");
        if (m_held_aw && !(out.awvalid && out.aw == m_aw))
            broken(cycle, "AW changed before AWREADY");
        if (m_held_w
            && !(out.wvalid && out.wlast == m_w_last && out.wstrb == m_w.strobe
                 && !std::memcmp(out.wdata, m_w.data, kBeat)))
            broken(cycle, "W changed before WREADY");
    }

    void hold(const Outputs<kBeat>& out) {
        m_held_ar = out.arvalid && !in.arready;
        m_held_aw = out.awvalid && !in.awready;
        m_held_w = out.wvalid && !in.wready;
        if (m_held_ar) m_ar = out.ar;
        if (m_held_aw) m_aw = out.aw;
        if (m_held_w) {
            m_w.strobe = out.wstrb;
            std::memcpy(m_w.data, out.wdata, kBeat);
            m_w_last = out.wlast;
        }
    }

    void check_address(const char* name, const Address& a, uint64_t cycle) {
        const unsigned beats = a.len + 1u;
        const auto where = static_cast<unsigned long long>(a.address);
        if ((1u << a.size) != kBeat || a.burst != 1)
            broken(cycle, "%s size %u, burst %u: must be whole beats, INCR", name, a.size, a.burst);
        else if (a.address % kBeat)
            broken(cycle, "%s address %#llx is no multiple of the beat", name, where);
        else if (beats > m_settings.burst_beats)
            broken(cycle, "%s of %u beats, at most %u", name, beats, m_settings.burst_beats);
        else if (a.address % kPage + beats * kBeat > kPage)
            broken(cycle, "%s of %u beats at %#llx crosses a page", name, beats, where);
    }

    bool holds(uint64_t address) const {
        return address >= m_base && address - m_base < m_size;
    }

    Response response(uint64_t address, bool fails) const {
        if (!holds(address)) return kDecodeError;
        if (fails) return kSlaveError;
        for (const Range& range : m_ranges)
            if (address < range.high && address + kBeat > range.low) return kSlaveError;
        return kOkay;
    }

    static bool contains(const std::vector<uint64_t>& list, uint64_t number) {
        for (uint64_t entry : list)
            if (entry == number) return true;
        return false;
    }

    void read_side(const Outputs<kBeat>& out, uint64_t cycle, uint64_t word) {
        if (in.rvalid && out.rready) {
            activity = cycle;
            ++read_beats;
            if (in.rlast) --m_reads_open;
            in.rvalid = false;
        }
        if (out.arvalid && in.arready) {
            activity = cycle;
            check_address("AR", out.ar, cycle);
            const bool fails = contains(m_fail_reads, m_read_count++);
            m_reads.push_back({out.ar.address, cycle + m_settings.latency, out.ar.len + 1u, fails});
            ++m_reads_open;
        }
        if (!in.rvalid && !m_reads.empty() && m_reads.front().ready <= cycle + 1
            && !stalls(word, 0))
            present_read();
        in.arready = m_reads_open < m_settings.outstanding && !stalls(word, 1);
    }

    void present_read() {
        Read& read = m_reads.front();
        in.rvalid = true;
        in.rlast = read.beats == 1;
        in.rresp = response(read.address, read.fails);
        if (holds(read.address))
            std::memcpy(in.rdata, m_data + (read.address - m_base), kBeat);
        else
            std::memset(in.rdata, 0xEE, kBeat);
        read.address += kBeat;
        if (!--read.beats) m_reads.pop_front();
    }

    void write_side(const Outputs<kBeat>& out, uint64_t cycle, uint64_t word) {
        if (in.bvalid && out.bready) {
            activity = cycle;
            --m_writes_open;
            in.bvalid = false;
        }
        if (out.awvalid && in.awready) open_write(out.aw, cycle);
        if (out.wvalid && in.wready) {
            activity = cycle;
            ++write_beats;
            take_beat(out, cycle);
        }
        if (!in.bvalid && !m_answers.empty() && m_answers.front().ready <= cycle + 1
            && !stalls(word, 2))
            answer_write();
        in.awready = m_writes_open < m_settings.outstanding && !stalls(word, 3);
        in.wready = !m_early && !stalls(word, 4);
    }

    void open_write(const Address& aw, uint64_t cycle) {
        activity = cycle;
        check_address("AW", aw, cycle);
        const bool fails = contains(m_fail_writes, m_write_count++);
        Write write{aw.address, aw.len + 1u, fails, {}};
        if (!m_spare.empty()) {
            write.data = std::move(m_spare.back());
            m_spare.pop_back();
            write.data.clear();
        }
        m_writes.push_back(std::move(write));
        ++m_writes_open;
        if (m_early) {
            m_early = false;
            append(m_early_beat, m_early_last, cycle);
        }
    }

    void take_beat(const Outputs<kBeat>& out, uint64_t cycle) {
        Beat beat;
        beat.strobe = out.wstrb;
        std::memcpy(beat.data, out.wdata, kBeat);
        if (!m_writes.empty()) return append(beat, out.wlast, cycle);
        m_early = true;
        m_early_beat = beat;
        m_early_last = out.wlast;
    }

    void append(const Beat& beat, bool last, uint64_t cycle) {
        Write& write = m_writes.front();
        write.data.push_back(beat);
        const bool full = write.data.size() == write.beats;
        if (last != full)
            broken(cycle, "WLAST is %d on beat %u of %u", last,
                   static_cast<unsigned>(write.data.size()), write.beats);
        if (!full) return;
        m_answers.push_back({cycle + m_settings.write_latency, std::move(write)});
        m_writes.pop_front();
    }

    void answer_write() {
        Write& write = m_answers.front().write;
        uint8_t worst = kOkay;
        uint64_t address = write.address;
        for (const Beat& beat : write.data) {
            const Response answer = response(address, write.fails);
            if (answer > worst) worst = answer;
            if (answer == kOkay) store(address, beat);
            address += kBeat;
        }
        in.bvalid = true;
        in.bresp = worst;
        m_spare.push_back(std::move(write.data));
        m_answers.pop_front();
    }

    void store(uint64_t address, const Beat& beat) {
        uint8_t* target = m_data + (address - m_base);
        constexpr uint64_t kAll = kBeat == 64 ? ~0ull : (1ull << (kBeat % 64)) - 1;
        if (beat.strobe == kAll) {
            std::memcpy(target, beat.data, kBeat);
            return;
        }
        for (unsigned i = 0; i < kBeat; ++i)
            if (beat.strobe >> i & 1) target[i] = beat.data[i];
    }
};

}  // namespace vitral

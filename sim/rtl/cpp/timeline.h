// Records what the stages of the core do, from the words that its state registers show.
//
// Looks once per cycle while the core is busy, so it counts the very cycles that the core's own
// counters count. Work is done only where a stage changes what it does.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace vitral {

constexpr unsigned kStages = 3;  // load, compute, store
constexpr unsigned kWaits = 7;   // codes of a state register's `wait` field
constexpr unsigned kTrafficCycles = 64;

struct Change {  // a stage's state register has a new value from this cycle on
    uint64_t cycle;
    uint32_t state;
    uint32_t stage;
};

struct Traffic {  // beats in `kTrafficCycles` cycles
    uint32_t read;
    uint32_t write;
};

struct Mark {  // an instruction whose end is wanted, and what was counted until then
    uint64_t stage;
    uint64_t index;
    uint64_t seen;  // 1 when it has ended
    uint64_t cycle;
    uint64_t read_beats;
    uint64_t write_beats;
    std::array<uint64_t, kStages * kWaits> counts;
};

class Timeline {
public:
    std::vector<Mark> marks;
    std::vector<Change> changes;
    std::vector<Traffic> traffic;
    std::array<const uint32_t*, kStages> states{};
    const uint32_t* status = nullptr;

    bool available() const { return status && states[0] && states[1] && states[2]; }
    bool active() const { return m_active; }

    // From the next launch on. Marks of a stage come in the order of their instructions.
    void start(std::vector<Mark> wanted, bool keep, uint64_t reads, uint64_t writes) {
        marks = std::move(wanted);
        changes.clear();
        traffic.clear();
        m_active = available() && (keep || !marks.empty());
        m_keep = keep;
        m_first = true;
        m_cycle = 0;
        m_counts = {};
        m_since = {};
        m_last.fill(kNothing);
        m_reads = m_window_reads = reads;
        m_writes = m_window_writes = writes;
        for (unsigned stage = 0; stage < kStages; ++stage) m_next[stage] = after(stage, 0);
    }

    void stop() { m_active = false; }

    // Whether traffic is recorded, so that every cycle has to be a `sample`.
    bool keeps() const { return m_active && m_keep; }

    // Cycles that are like the last sample.
    void pass(uint64_t cycles) {
        if (m_active && (*status & 1)) m_cycle += cycles;
    }

    // One cycle, its signals settled; `reads` and `writes` are the beats until before it. `fresh`
    // says whether any state may differ from that of the sample before.
    void sample(bool fresh, uint64_t reads, uint64_t writes) {
        if (!(*status & 1)) return;
        if (fresh | m_first) {
            for (unsigned stage = 0; stage < kStages; ++stage) {
                const uint32_t state = *states[stage];
                if (state != m_last[stage]) change(stage, state, reads, writes);
            }
            m_first = false;
        }
        ++m_cycle;
        if (m_keep && m_cycle % kTrafficCycles == 0) {
            traffic.push_back({static_cast<uint32_t>(reads - m_window_reads),
                               static_cast<uint32_t>(writes - m_window_writes)});
            m_window_reads = reads;
            m_window_writes = writes;
        }
    }

private:
    static constexpr uint32_t kNothing = ~0u;
    static constexpr uint32_t kIdle = 1;

    bool m_active = false;
    bool m_keep = false;
    bool m_first = true;  // no state has been looked at since the start
    uint64_t m_cycle = 0;  // of the program
    uint64_t m_reads = 0, m_writes = 0;
    uint64_t m_window_reads = 0, m_window_writes = 0;
    std::array<uint64_t, kStages * kWaits> m_counts{};
    std::array<uint64_t, kStages> m_since{};
    std::array<uint32_t, kStages> m_last{};
    std::array<size_t, kStages> m_next{};

    static uint32_t wait_of(uint32_t state) { return state >> 24; }
    static uint32_t index_of(uint32_t state) { return state & 0xFFFFFF; }

    // The place of the first mark of `stage` from `place` on.
    size_t after(unsigned stage, size_t place) const {
        while (place < marks.size() && marks[place].stage != stage) ++place;
        return place;
    }

    void change(unsigned stage, uint32_t state, uint64_t reads, uint64_t writes) {
        const uint32_t last = m_last[stage];
        if (last != kNothing) {
            count(m_counts, stage);
            m_since[stage] = m_cycle;
            while (m_next[stage] < marks.size() && ended(marks[m_next[stage]].index, last, state)) {
                note(marks[m_next[stage]], reads, writes);
                m_next[stage] = after(stage, m_next[stage] + 1);
            }
        }
        m_since[stage] = m_cycle;
        m_last[stage] = state;
        if (m_keep) changes.push_back({m_cycle, state, stage});
    }

    // An idle stage shows the number of an instruction long done: what it left is what counts.
    static bool ended(uint64_t index, uint32_t last, uint32_t state) {
        if (wait_of(state) != kIdle) return index_of(state) > index;
        return wait_of(last) != kIdle && index_of(last) >= index;
    }

    void note(Mark& mark, uint64_t reads, uint64_t writes) {
        mark.seen = 1;
        mark.cycle = m_cycle;
        mark.read_beats = reads - m_reads;
        mark.write_beats = writes - m_writes;
        mark.counts = m_counts;
        for (unsigned stage = 0; stage < kStages; ++stage) {
            if (m_last[stage] != kNothing) count(mark.counts, stage);
        }
    }

    // Add the cycles of what `stage` has been doing until now.
    void count(std::array<uint64_t, kStages * kWaits>& counts, unsigned stage) const {
        const uint32_t wait = wait_of(m_last[stage]);
        if (wait < kWaits) counts[stage * kWaits + wait] += m_cycle - m_since[stage];
    }
};

}  // namespace vitral

"""Writes a netlist as the C++ of a class with one function per unit.

A unit is called when something that it reads changed: flags, one per unit, are set by whoever
changes what the unit reads. Next values of registers are kept apart and compared with the present
ones when all units are done.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from vitral.sim.rtl.netlist.dots import find_dots
from vitral.sim.rtl.netlist.expressions import constant, declaration, is_wide
from vitral.sim.rtl.netlist.flags import NOBODY, WORD, Readers, asked, cleared, dispatch, marks
from vitral.sim.rtl.netlist.groups import Group, as_usual, fact_order
from vitral.sim.rtl.netlist.inplace import counters_of, set_in_place
from vitral.sim.rtl.netlist.items import Block, Branch, block_reads, node_reads, variables
from vitral.sim.rtl.netlist.members import bytes_of, if_other, port, row, zero
from vitral.sim.rtl.netlist.netlist import Netlist, Ram, Variable, width_of
from vitral.sim.rtl.netlist.place import place_outputs
from vitral.sim.rtl.netlist.rtlil import NetlistError
from vitral.sim.rtl.netlist.simplify import simplify
from vitral.sim.rtl.netlist.statements import Statements
from vitral.sim.rtl.netlist.units import Unit, find_units
from vitral.sim.rtl.netlist.usual import find_facts

__all__ = ["write_cpp"]

_PUBLIC = re.compile(r"\.(?:memory|lane\d+|bank_\d+)$")

SHORT = ("as_usual", "news", "edge", "settle", "probe", "touch", "look", "tick")
"""Functions that others call."""

LARGE = 128
"""Bits from which on a register is rather not compared, and set in place if possible."""

MOST_SINGLE = 4
"""Registers of a group that are compared one by one."""


class _Writer:
    """The class of a netlist, piece by piece."""

    def __init__(
        self,
        netlist: Netlist,
        together: Sequence[str],
        restless: Sequence[str],
        facts: Mapping[Variable, str],
    ) -> None:
        self._netlist = netlist
        self.text = Statements()
        self._outputs = [(Variable(name, width_of(v)), v) for name, v in netlist.outputs]
        self._probes = [(Variable(name, width_of(v)), v) for name, v in netlist.probes]
        self.ports = [*netlist.inputs, *(v for v, _ in (*self._outputs, *self._probes))]
        for variable in self.ports:
            self.text.name(variable)
        self._settle = place_outputs(netlist, self._outputs)
        self._probe = place_outputs(netlist, self._probes)
        self._facts = facts
        self._units = find_units(netlist, together, restless, facts)
        self._together = {n for n, unit in enumerate(self._units) if unit.together}
        self._readers = self._find_readers()
        self._groups: dict[Unit, list[Group]] = {}
        for number, unit in enumerate(self._units):
            self._groups[unit] = self._grouped(unit, number)
        self._keepers = {v: k for unit in self._units for v, k in unit.exports.items()}

    def _find_readers(self) -> dict[Variable | Ram, Readers]:
        """Flags of the units that read something; behind them those of outputs and probes."""
        always: dict[Variable | Ram, set[int]] = {}
        inside: dict[Variable | Ram, set[int]] = {}
        for number, unit in enumerate(self._units):
            for thing in unit.reads:
                kind = inside if thing in unit.inside and not unit.together else always
                kind.setdefault(thing, set()).update(self._together if unit.together else {number})
        for number, block in enumerate((self._settle, self._probe), len(self._units)):
            for thing in block_reads(block):
                always.setdefault(thing, set()).add(number)
        return {
            thing: Readers(frozenset(always.get(thing, ())), frozenset(inside.get(thing, ())))
            for thing in always.keys() | inside.keys()
        }

    def _grouped(self, unit: Unit, number: int) -> list[Group]:
        last = len(self._units)
        readers = {r: self._readers.get(r, NOBODY) for r in unit.registers}
        early = {
            r: all(n <= number or n >= last for n in readers[r].always | readers[r].inside)
            for r in unit.registers
        }
        counts = counters_of(unit.updates)
        large = [r for r in unit.registers if early[r] and (r.width >= LARGE or r in counts)]
        direct = set(set_in_place(unit.updates, unit.resets, large))
        if unit.usual:
            direct = set(set_in_place(unit.usual.updates, unit.usual.resets, direct))
        groups: dict[tuple[Variable | bool, Readers], list[Variable]] = {}
        for register in unit.registers:
            lone = register if is_wide(register.width) and register not in direct else False
            key = (True if register in direct else lone, readers[register])
            groups.setdefault(key, []).append(register)
        result = []
        for (kind, flags), members in groups.items():
            registers = sorted(members, key=lambda r: fact_order(r, self._facts))
            index = sum(len(g) for g in self._groups.values()) + len(result)
            first = registers[0]
            group = Group(index, registers, flags, early[first], direct=kind is True)
            result.append(group)
            for register in registers:
                field = self.text.name(register)
                self.text.now[register] = f"now{index}.{field}"
                self.text.next[register] = f"{'now' if group.direct else 'next'}{index}.{field}"
                if group.direct or (group.early and is_wide(register.width)):
                    self.text.flags[register] = f"set{index}"
        return result

    def state(self) -> list[str]:
        """Registers with their first values, kept exports and inputs, flags, and memories."""
        lines = []
        for group in self._all_groups():
            fields = [self._field(register) for register in group.registers]
            names = f"now{group.number}" + ("" if group.direct else f", next{group.number}")
            lines.append(f"    struct alignas(32) {{ {' '.join(fields)} }} {names};")
        for keeper in self._keepers.values():
            lines.append(f"    {declaration(keeper, self.text.name(keeper))} = {zero(keeper)};")
        for variable in self._netlist.inputs:
            lines.append(f"    {declaration(variable, self._seen(variable))} = {zero(variable)};")
        for ram in self._netlist.rams:
            lines.append(f"    {row(ram, self.text.name(ram))} = {{}};")
        words = (len(self._units) + 1) // WORD + 1
        lines.append(
            f"    uint64_t dirty[{words}] = {{}}, late[{words}] = {{}}, open[{words}] = {{}};"
        )
        return lines

    def _all_groups(self) -> list[Group]:
        return [group for unit in self._units for group in self._groups[unit]]

    def _field(self, register: Variable) -> str:
        init = int(register.init or "0", 2)
        if is_wide(register.width) and init:
            raise NetlistError(f"{register.name} is too wide for a first value")
        first = "{}" if is_wide(register.width) else constant(init, register.width)
        return f"{declaration(register, self.text.name(register))} = {first};"

    def _seen(self, variable: Variable) -> str:
        return f"{self.text.name(variable)}_seen"

    def functions(self) -> dict[str, list[str]]:
        """Bodies of all functions."""
        result = {}
        for ram in self._netlist.rams:
            self.text.marks[ram] = " ".join(marks(self._readers.get(ram, NOBODY)))
        for number, unit in enumerate(self._units):
            result[f"unit{number}"] = self._unit(unit, number)
            if unit.usual:
                result[f"usual{number}"] = self._unit(unit.usual, number)
            commits = [line for g in self._groups[unit] if not g.early for line in self._commit(g)]
            if commits:
                result[f"commit{number}"] = commits
        self.text.kept = {}
        last = len(self._units)
        result["settle"] = self._if_flagged(last, self._settle)
        result["probe"] = self._if_flagged(last + 1, self._probe, "changed || ")
        outputs, probes = (f"({asked('dirty', number)})" for number in (last, last + 1))
        result["news"] = [f"    return {outputs} || (probing && {probes});"]
        everybody = Readers(frozenset(range(last + 1 + bool(self._probes))), frozenset())
        result["touch"] = [f"    {mark}" for mark in marks(everybody)]
        result["look"] = self._look()
        family = sorted(self._together)
        usual = bool(family) and self._units[family[0]].usual is not None
        if usual:
            result["as_usual"] = as_usual(self._all_groups(), self._facts, self.text)
            for place, number in enumerate(family[1:], 1):
                result[f"catch_up{number}"] = self._catch_up(family[:place])
        result["tick"] = self._tick(result, usual)
        result["edge"] = ["    look();", "    tick();"]
        return result

    def _if_flagged(self, number: int, block: Block, forced: str = "") -> list[str]:
        """What is computed when asked for, if what it reads changed; says whether it was."""
        return [
            f"    if (!({forced}{asked('dirty', number)})) return false;",
            f"    {cleared('dirty', number)}",
            *self.text.lines([block]),
            "    return true;",
        ]

    def _look(self) -> list[str]:
        lines = []
        for variable in self._netlist.inputs:
            found = marks(self._readers.get(variable, NOBODY))
            if found:
                name, seen = self.text.name(variable), self._seen(variable)
                lines += if_other(variable.width, seen, name, found)
        return lines

    def _tick(self, functions: Iterable[str], usual: bool) -> list[str]:
        family = sorted(self._together) if usual else []
        calls = [
            (n, self._paced(n, n == family[0]) if n in family else [f"unit{n}();"])
            for n in range(len(self._units))
        ]
        commits = [(n, f"commit{n}") for n in range(len(self._units))]
        late = [(n, [f"{title}();"]) for n, title in commits if title in functions]
        return [
            *(["    bool ran = false, usual = false;"] if usual else []),
            *dispatch("dirty", calls, self._together),
            *dispatch("late", late, self._together),
        ]

    def _paced(self, number: int, first: bool) -> list[str]:
        """A unit with a usual case: all of its family run in the same way, the earlier ones too."""
        if first:
            begin = ["usual = as_usual();"]
        else:
            begin = ["if (!ran) {", "    usual = as_usual();", f"    catch_up{number}(usual);", "}"]
        return [*begin, "ran = true;", *self._either(number)]

    def _either(self, number: int) -> list[str]:
        return [f"if (usual) usual{number}();", f"else unit{number}();"]

    def _catch_up(self, before: Sequence[int]) -> list[str]:
        """Units of the family that were not flagged when it was their turn."""
        return [
            f"    {line}"
            for number in before
            for line in (cleared("dirty", number), *self._either(number))
        ]

    def _unit(self, unit: Unit, number: int) -> list[str]:
        keepers = dict(self._keepers)
        for other in self._units:
            if other.together and other.usual:
                keepers |= other.usual.exports
        self.text.kept = {
            v: self.text.name(keeper) for v, keeper in keepers.items() if v not in unit.exports
        }
        word, bit = number // WORD, f"{1 << number % WORD:#x}ull"
        lines = [f"    // {unit.name}"]
        groups = self._groups[self._units[number]]
        if not all(group.early for group in groups):
            lines.append(f"    late[{word}] |= {bit};")
        if unit.exports:
            unit.updates.items = []
        flags = {self.text.flags[r] for g in groups for r in g.registers if r in self.text.flags}
        lines += [f"    bool {flag} = false;" for flag in sorted(flags)]
        looks = self._note_branches(unit)
        lines += ["    uint64_t taken = 0;"] if looks else []
        lines += self.text.lines([unit.updates, unit.resets])
        if looks:
            lines.append(f"    open[{word}] = (open[{word}] & ~{bit}) | taken;")
        for variable, keeper in unit.exports.items():
            readers = self._readers.get(unit.copies.get(variable, variable), NOBODY)
            if unit.together:
                readers = replace(readers, always=readers.always - self._together)
            name = self.text.name(variable)
            kept = self.text.name(keeper)
            lines += if_other(variable.width, kept, name, marks(readers))
        for group in groups:
            if group.early:
                lines += self._commit(group)
        return lines

    def _note_branches(self, unit: Unit) -> bool:
        """Lets the branches with what a unit reads inside say so; whether there are any."""
        found = False
        if unit.together:
            return found
        bit = f"{1 << self._units.index(unit) % WORD:#x}ull"
        for item in unit.updates.items:
            if isinstance(item, Branch):
                for _, block in item.cases:
                    if not unit.inside.isdisjoint(block_reads(block)):
                        block.note = f"taken = {bit};"
                        found = True
        return found

    def _commit(self, group: Group) -> list[str]:
        """Makes next values the present ones."""
        flagged = marks(group.readers)
        if group.direct:
            flag = self.text.flags[group.registers[0]]
            return [f"    if ({flag}) {{", *(f"        {mark}" for mark in flagged), "    }"]
        if group.registers[0] in self.text.flags:
            (register,) = group.registers
            now, following = self.text.now[register], self.text.next[register]
            test = f"{self.text.flags[register]} && renew<{bytes_of(register)}>({now}, {following})"
            return [f"    if ({test}) {{", *(f"        {mark}" for mark in flagged), "    }"]
        now, following = f"now{group.number}", f"next{group.number}"
        pairs = [(self.text.now[r], self.text.next[r]) for r in group.registers]
        if len(pairs) > MOST_SINGLE or is_wide(group.registers[0].width):
            test, copies = f"renew<sizeof {now}>(&{now}, &{following})", []
        elif len(pairs) == 1:
            test, copies = " != ".join(pairs[0]), [" = ".join(pairs[0]) + ";"]
        else:
            test = " | ".join(f"({old} ^ {new})" for old, new in pairs)
            copies = [f"{now} = {following};"]
        return [f"    if ({test}) {{", *(f"        {t}" for t in (*copies, *flagged)), "    }"]

    def visits(self) -> list[str]:
        """Calls of `visit(name, data, bytes of a row, rows)`."""
        lines = []
        for ram in self._netlist.rams:
            if _PUBLIC.search(ram.name):
                name = self.text.name(ram)
                lines.append(f'        visit("{ram.name}", {name}, sizeof {name}[0], {ram.depth});')
        return lines


def write_cpp(
    netlist: Netlist,
    name: str,
    together: Sequence[str] = (),
    restless: Sequence[str] = (),
    usual: Mapping[str, str] | None = None,
) -> str:
    """C++ of a class `name`: ports and probes as members, its memories, and what moves it.

    `edge()` is a rising edge of the one clock, with the inputs as they are: `look()` at them, which
    may be left out when they are those of the edge before, and `tick()`. `settle()` gives the
    outputs their values and says whether any may have changed, `probe()` does that with the probes,
    which may look at inputs: it is told whether these changed. `news()` says whether `settle()`,
    and when `probing` also `probe(false)`, has anything to do. `touch()` has to be called after
    memories were written from outside.

    Raises
    ------
    ValueError
        When an output depends on an input: it would have to settle twice in a cycle.
    """
    find_dots(netlist)
    simplify(netlist)
    _check_outputs(netlist)
    writer = _Writer(netlist, together, restless, find_facts(netlist, usual or {}))
    functions = writer.functions()
    lines = [
        '#include "words.h"',
        "",
        "namespace vitral {",
        "",
        f"struct {name} {{",
        f"    static constexpr unsigned kBeat = {_beat_bytes(netlist)};",
        *(f"    {port(variable, writer.text.name(variable))};" for variable in writer.ports),
        *writer.state(),
        f"    {name}() {{ touch(); }}",
        "    template <class Visitor> void memories(Visitor&& visit) {",
        *writer.visits(),
        "    }",
        *(f"    {_signature(title)};" for title in functions),
        "};",
    ]
    for title, body in functions.items():
        place = "inline" if title in SHORT else "__attribute__((noinline)) inline"
        lines += ["", f"{place} {_signature(title, f'{name}::')} {{", *body, "}"]
    return "\n".join([*lines, "", "}  // namespace vitral", ""])


def _check_outputs(netlist: Netlist) -> None:
    inputs = set(netlist.inputs)
    for name, value in netlist.outputs:
        stack, seen = list(variables(value)), set()
        while stack:
            variable = stack.pop()
            if variable in inputs:
                raise NetlistError(f"output {name} depends on input {variable.name} in one cycle")
            if variable in netlist.nodes and variable not in seen:
                seen.add(variable)
                stack += node_reads(netlist.nodes[variable])


def _signature(title: str, scope: str = "") -> str:
    """A function's head."""
    kind = "bool" if title in ("settle", "probe", "news", "as_usual") else "void"
    arguments = {"probe": "bool changed", "news": "bool probing"}.get(title, "")
    if title.startswith("catch_up"):
        arguments = "bool usual"
    return f"{kind} {scope}{title}({arguments}){' const' if title == 'news' else ''}"


def _beat_bytes(netlist: Netlist) -> int:
    """Bytes of the memory port's data."""
    return next((v.width // 8 for v in netlist.inputs if v.name == "m_axi_rdata"), 0)

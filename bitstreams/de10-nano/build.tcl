# Builds the bitstream of de10-nano: quartus_sh -t build.tcl
# Leaves vitral.rbf and result.json beside this file.

cd [file dirname [file normalize [info script]]]
set root $::quartus(quartus_rootpath)

proc run {program args} {
  puts "vitral: [file tail $program] $args"
  exec -ignorestderr $program {*}$args >@ stdout
}

set qsys [file join $root sopc_builder bin]
run [file join $qsys qsys-script] --script=system.tcl --search-path=ip,$
run [file join $qsys qsys-generate] system.qsys --synthesis=VERILOG --output-directory=system \
  --search-path=ip,$

set bin $::quartus(binpath)
run [file join $bin quartus_map] vitral
# pin and I/O settings of the processor's memory, written by the generator
run [file join $bin quartus_sta] \
  -t system/synthesis/submodules/hps_sdram_p0_pin_assignments.tcl vitral
run [file join $bin quartus_fit] vitral
run [file join $bin quartus_asm] vitral
run [file join $bin quartus_sta] vitral
run [file join $bin quartus_sta] -t report.tcl
run [file join $bin quartus_cpf] -c -o bitstream_compression=on \
  output/vitral.sof vitral.rbf

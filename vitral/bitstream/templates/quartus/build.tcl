# Builds the bitstream of @{target}: quartus_sh -t build.tcl
# Leaves @{project}.rbf and result.json beside this file.

cd [file dirname [file normalize [info script]]]
set root $::quartus(quartus_rootpath)

proc run {program args} {
  puts "@{project}: [file tail $program] $args"
  exec -ignorestderr $program {*}$args >@ stdout
}

set qsys [file join $root sopc_builder bin]
run [file join $qsys qsys-script] --script=system.tcl --search-path=@{search},$
run [file join $qsys qsys-generate] system.qsys --synthesis=VERILOG --output-directory=system \
  --search-path=@{search},$

set bin $::quartus(binpath)
run [file join $bin quartus_map] @{project}
# pin and I/O settings of the processor's memory, written by the generator
run [file join $bin quartus_sta] \
  -t system/synthesis/submodules/hps_sdram_p0_pin_assignments.tcl @{project}
run [file join $bin quartus_fit] @{project}
run [file join $bin quartus_asm] @{project}
run [file join $bin quartus_sta] @{project}
run [file join $bin quartus_sta] -t report.tcl
run [file join $bin quartus_cpf] -c -o bitstream_compression=on \
  output/@{project}.sof @{project}.rbf

# Builds the bitstream of zcu104: vivado -mode batch -source build.tcl
# Leaves vitral.bit, vitral.hwh and result.json beside this file.

set here [file dirname [file normalize [info script]]]
set project [file join $here project]

proc ip {name} {
  # The catalogue's newest version of one of the vendor's blocks.
  set found [get_ipdefs -all -filter "VLNV =~ xilinx.com:ip:${name}:* && UPGRADE_VERSIONS == \"\""]
  if {[llength $found] == 0} { error "no IP $name in this version of Vivado" }
  return [lindex $found end]
}

proc pins {args} {
  set found {}
  foreach name $args { lappend found [get_bd_pins $name] }
  return $found
}

proc join_buses {from to} {
  connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}

create_project vitral $project -part xczu7ev-ffvc1156-2-e -force
set_property ip_repo_paths [list [file join $here ip]] [current_project]
update_ip_catalog
create_bd_design system

# The processor. Its memory and pins are set up by the board's boot image; what is set here is
# what touches programmable logic.
create_bd_cell -type ip -vlnv [ip zynq_ultra_ps_e] ps
set_property -dict [list \
  CONFIG.PSU__USE__M_AXI_GP0 1 \
  CONFIG.PSU__MAXIGP0__DATA_WIDTH 32 \
  CONFIG.PSU__USE__M_AXI_GP1 0 \
  CONFIG.PSU__USE__M_AXI_GP2 0 \
  CONFIG.PSU__FPGA_PL0_ENABLE 1 \
  CONFIG.PSU__USE__IRQ0 1 \
  CONFIG.PSU__USE__S_AXI_GP2 1 \
  CONFIG.PSU__SAXIGP2__DATA_WIDTH 128 \
  CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ 200 \
] [get_bd_cells ps]


# The core, the interrupt controller that PYNQ listens to, and a reset for both.
create_bd_cell -type ip -vlnv vitral.dev:vitral:vitral_core:1.0 core
create_bd_cell -type ip -vlnv [ip axi_intc] intc
set_property -dict [list CONFIG.C_IRQ_CONNECTION 1] [get_bd_cells intc]
create_bd_cell -type ip -vlnv [ip proc_sys_reset] reset
create_bd_cell -type ip -vlnv [ip axi_interconnect] registers
set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 2] [get_bd_cells registers]
create_bd_cell -type ip -vlnv [ip axi_interconnect] memory
set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 1] [get_bd_cells memory]

# One clock for everything.
connect_bd_net {*}[pins ps/pl_clk0 ps/maxihpm0_fpd_aclk ps/saxihp0_fpd_aclk \
  reset/slowest_sync_clk core/aclk intc/s_axi_aclk \
  registers/ACLK registers/S00_ACLK registers/M00_ACLK registers/M01_ACLK \
  memory/ACLK memory/S00_ACLK memory/M00_ACLK]
connect_bd_net {*}[pins ps/pl_resetn0 reset/ext_reset_in]
connect_bd_net {*}[pins reset/interconnect_aresetn registers/ARESETN memory/ARESETN]
connect_bd_net {*}[pins reset/peripheral_aresetn core/aresetn intc/s_axi_aresetn \
  registers/S00_ARESETN registers/M00_ARESETN registers/M01_ARESETN \
  memory/S00_ARESETN memory/M00_ARESETN]

# Processor to registers, core to memory, interrupt to processor.
join_buses ps/M_AXI_HPM0_FPD registers/S00_AXI
join_buses registers/M00_AXI core/s_axi
join_buses registers/M01_AXI intc/s_axi
join_buses core/m_axi memory/S00_AXI
join_buses memory/M00_AXI ps/S_AXI_HP0_FPD
connect_bd_net {*}[pins core/irq intc/intr]
connect_bd_net {*}[pins intc/irq ps/pl_ps_irq0]

# Addresses: the core's registers, the interrupt controller's, and the board's memory.
assign_bd_address -offset 0xA0000000 -range 4096 \
  -target_address_space [get_bd_addr_spaces ps/Data] [get_bd_addr_segs core/s_axi/reg0] -force
assign_bd_address -offset 0xA0010000 -range 65536 \
  -target_address_space [get_bd_addr_spaces ps/Data] [get_bd_addr_segs intc/S_AXI/Reg] -force
assign_bd_address -offset 0x00000000 -range 2147483648 \
  -target_address_space [get_bd_addr_spaces core/m_axi] \
  [get_bd_addr_segs ps/SAXIGP2/HP0_DDR_LOW] -force
validate_bd_design
save_bd_design

set design [get_files system.bd]
generate_target all $design
add_files -norecurse [make_wrapper -files $design -top]
set_property top system_wrapper [current_fileset]
update_compile_order -fileset sources_1

launch_runs impl_1 -to_step write_bitstream -jobs 4
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
  error "implementation stopped: [get_property STATUS [get_runs impl_1]]"
}

open_run impl_1
report_utilization -file [file join $here utilization.rpt]
report_timing_summary -file [file join $here timing.rpt]
set slack [get_property SLACK [get_timing_paths -max_paths 1 -setup]]
set result [open [file join $here result.json] w]
puts $result "{\"tool_version\": \"[version -short]\", \"slack_ns\": $slack}"
close $result

file copy -force [file join $project vitral.runs impl_1 system_wrapper.bit] \
  [file join $here vitral.bit]
set handoff [glob -directory $project vitral.*/sources_1/bd/system/hw_handoff/system.hwh]
file copy -force [lindex $handoff end] [file join $here vitral.hwh]

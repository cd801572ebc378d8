# The system around the core of @{target}: qsys-script --script=system.tcl --search-path=ip,$
package require -exact qsys 16.0

proc parameters {instance values} {
  foreach {name value} $values { set_instance_parameter_value $instance $name $value }
}

create_system system
set_project_property DEVICE_FAMILY {@{family}}
set_project_property DEVICE @{part}

add_instance oscillator altera_clock_bridge
parameters oscillator {EXPLICIT_CLOCK_RATE @{oscillator_hz}}
add_instance pll altera_pll
parameters pll {
  gui_reference_clock_frequency @{oscillator_mhz}
  gui_number_of_clocks 1
  gui_output_clock_frequency0 @{clock_mhz}
  gui_use_locked 0
}

# The processor's memory controller has been set up by the boot loader, and is not by this
# design: its timing here only has to be legal.
add_instance hps altera_hps
parameters hps {
  MPU_EVENTS_Enable 0
  S2F_Width 0
  F2S_Width 0
  LWH2F_Enable true
  F2SDRAM_Type {@{port_type}}
  F2SDRAM_Width {@{port_bits}}
  F2SINTERRUPT_Enable 1
  HPS_PROTOCOL DDR3
  MEM_CLK_FREQ 400.0
  MEM_DQ_WIDTH @{dram_bits}
  MEM_ROW_ADDR_WIDTH 15
  MEM_COL_ADDR_WIDTH 10
  MEM_BANKADDR_WIDTH 3
  MEM_TCL 7
  MEM_WTCL 7
  MEM_DRV_STR RZQ/6
  MEM_RTT_NOM RZQ/6
  MEM_RTT_WR {Dynamic ODT off}
}
add_instance core @{name}

add_connection oscillator.out_clk pll.refclk
add_connection hps.h2f_reset pll.reset
add_connection hps.h2f_reset core.@{reset}
foreach clock {core.@{clock} hps.h2f_lw_axi_clock hps.@{port}_clock} {
  add_connection pll.outclk0 $clock
}

add_connection hps.h2f_lw_axi_master core.@{slave}
set_connection_parameter_value hps.h2f_lw_axi_master/core.@{slave} baseAddress @{core_offset}
add_connection core.@{master} hps.@{port}_data
set_connection_parameter_value core.@{master}/hps.@{port}_data baseAddress @{dram_offset}
add_connection hps.f2h_irq0 core.@{irq}
set_connection_parameter_value hps.f2h_irq0/core.@{irq} irqNumber 0

add_interface clk clock sink
set_interface_property clk EXPORT_OF oscillator.in_clk
add_interface memory conduit end
set_interface_property memory EXPORT_OF hps.memory

save_system system.qsys

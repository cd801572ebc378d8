# The core as a component of Platform Designer.
package require -exact qsys 16.0

set_module_property NAME @{name}
set_module_property VERSION @{version}
set_module_property DISPLAY_NAME "Vitral int8 tensor accelerator"
set_module_property GROUP "Accelerators"
set_module_property EDITABLE false

add_fileset synthesis QUARTUS_SYNTH "" ""
set_fileset_property synthesis TOP_LEVEL @{top}
add_fileset_file @{source} VERILOG PATH @{source} TOP_LEVEL_FILE

add_interface @{clock} clock end
add_interface_port @{clock} @{clock} clk Input 1

add_interface @{reset} reset end
set_interface_property @{reset} associatedClock @{clock}
set_interface_property @{reset} synchronousEdges BOTH
add_interface_port @{reset} @{reset} reset_n Input 1

add_interface @{slave} axi4lite end
set_interface_property @{slave} associatedClock @{clock}
set_interface_property @{slave} associatedReset @{reset}
@{slave_ports}

add_interface @{master} axi4 start
set_interface_property @{master} associatedClock @{clock}
set_interface_property @{master} associatedReset @{reset}
set_interface_property @{master} readIssuingCapability @{outstanding}
set_interface_property @{master} writeIssuingCapability @{outstanding}
set_interface_property @{master} combinedIssuingCapability @{both_outstanding}
@{master_ports}

add_interface @{irq} interrupt end
set_interface_property @{irq} associatedAddressablePoint @{slave}
set_interface_property @{irq} associatedClock @{clock}
set_interface_property @{irq} associatedReset @{reset}
add_interface_port @{irq} @{irq} irq Output 1

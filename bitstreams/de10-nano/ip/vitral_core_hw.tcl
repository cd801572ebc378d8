# The core as a component of Platform Designer.
package require -exact qsys 16.0

set_module_property NAME vitral_core
set_module_property VERSION 1.0
set_module_property DISPLAY_NAME "Vitral int8 tensor accelerator"
set_module_property GROUP "Accelerators"
set_module_property EDITABLE false

add_fileset synthesis QUARTUS_SYNTH "" ""
set_fileset_property synthesis TOP_LEVEL vitral_core
add_fileset_file vitral_core.v VERILOG PATH vitral_core.v TOP_LEVEL_FILE

add_interface aclk clock end
add_interface_port aclk aclk clk Input 1

add_interface aresetn reset end
set_interface_property aresetn associatedClock aclk
set_interface_property aresetn synchronousEdges BOTH
add_interface_port aresetn aresetn reset_n Input 1

add_interface s_axi axi4lite end
set_interface_property s_axi associatedClock aclk
set_interface_property s_axi associatedReset aresetn
add_interface_port s_axi s_axi_awaddr awaddr Input 12
add_interface_port s_axi s_axi_awprot awprot Input 3
add_interface_port s_axi s_axi_awvalid awvalid Input 1
add_interface_port s_axi s_axi_awready awready Output 1
add_interface_port s_axi s_axi_wdata wdata Input 32
add_interface_port s_axi s_axi_wstrb wstrb Input 4
add_interface_port s_axi s_axi_wvalid wvalid Input 1
add_interface_port s_axi s_axi_wready wready Output 1
add_interface_port s_axi s_axi_bresp bresp Output 2
add_interface_port s_axi s_axi_bvalid bvalid Output 1
add_interface_port s_axi s_axi_bready bready Input 1
add_interface_port s_axi s_axi_araddr araddr Input 12
add_interface_port s_axi s_axi_arprot arprot Input 3
add_interface_port s_axi s_axi_arvalid arvalid Input 1
add_interface_port s_axi s_axi_arready arready Output 1
add_interface_port s_axi s_axi_rdata rdata Output 32
add_interface_port s_axi s_axi_rresp rresp Output 2
add_interface_port s_axi s_axi_rvalid rvalid Output 1
add_interface_port s_axi s_axi_rready rready Input 1

add_interface m_axi axi4 start
set_interface_property m_axi associatedClock aclk
set_interface_property m_axi associatedReset aresetn
set_interface_property m_axi readIssuingCapability 8
set_interface_property m_axi writeIssuingCapability 8
set_interface_property m_axi combinedIssuingCapability 16
add_interface_port m_axi m_axi_awid awid Output 1
add_interface_port m_axi m_axi_awaddr awaddr Output 32
add_interface_port m_axi m_axi_awregion awregion Output 4
add_interface_port m_axi m_axi_awlen awlen Output 8
add_interface_port m_axi m_axi_awsize awsize Output 3
add_interface_port m_axi m_axi_awburst awburst Output 2
add_interface_port m_axi m_axi_awlock awlock Output 1
add_interface_port m_axi m_axi_awcache awcache Output 4
add_interface_port m_axi m_axi_awprot awprot Output 3
add_interface_port m_axi m_axi_awqos awqos Output 4
add_interface_port m_axi m_axi_awuser awuser Output 8
add_interface_port m_axi m_axi_awvalid awvalid Output 1
add_interface_port m_axi m_axi_awready awready Input 1
add_interface_port m_axi m_axi_wdata wdata Output 64
add_interface_port m_axi m_axi_wstrb wstrb Output 8
add_interface_port m_axi m_axi_wlast wlast Output 1
add_interface_port m_axi m_axi_wvalid wvalid Output 1
add_interface_port m_axi m_axi_wready wready Input 1
add_interface_port m_axi m_axi_bid bid Input 1
add_interface_port m_axi m_axi_bresp bresp Input 2
add_interface_port m_axi m_axi_bvalid bvalid Input 1
add_interface_port m_axi m_axi_bready bready Output 1
add_interface_port m_axi m_axi_arid arid Output 1
add_interface_port m_axi m_axi_araddr araddr Output 32
add_interface_port m_axi m_axi_arregion arregion Output 4
add_interface_port m_axi m_axi_arlen arlen Output 8
add_interface_port m_axi m_axi_arsize arsize Output 3
add_interface_port m_axi m_axi_arburst arburst Output 2
add_interface_port m_axi m_axi_arlock arlock Output 1
add_interface_port m_axi m_axi_arcache arcache Output 4
add_interface_port m_axi m_axi_arprot arprot Output 3
add_interface_port m_axi m_axi_arqos arqos Output 4
add_interface_port m_axi m_axi_aruser aruser Output 8
add_interface_port m_axi m_axi_arvalid arvalid Output 1
add_interface_port m_axi m_axi_arready arready Input 1
add_interface_port m_axi m_axi_rid rid Input 1
add_interface_port m_axi m_axi_rdata rdata Input 64
add_interface_port m_axi m_axi_rresp rresp Input 2
add_interface_port m_axi m_axi_rlast rlast Input 1
add_interface_port m_axi m_axi_rvalid rvalid Input 1
add_interface_port m_axi m_axi_rready rready Output 1

add_interface irq interrupt end
set_interface_property irq associatedAddressablePoint s_axi
set_interface_property irq associatedClock aclk
set_interface_property irq associatedReset aresetn
add_interface_port irq irq irq Output 1

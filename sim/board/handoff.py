"""Hardware handoff files (.hwh) of an overlay with one core, as Vivado would write them."""

from vitral.registers import ADDRESS_BITS
from vitral.runtime.boards.bitfile import VLNV

__all__ = ["CORE_ADDRESS", "handoff"]

CORE_ADDRESS = 0x43C0_0000
PS = "processing_system7_0"
CLOCKS = "".join(
    f"""
        <PARAMETER NAME="PCW_FCLK{n}_PERIPHERAL_CLKSRC" VALUE="IO PLL"/>
        <PARAMETER NAME="PCW_ACT_FPGA{n}_PERIPHERAL_FREQMHZ" VALUE="100.000000"/>
        <PARAMETER NAME="PCW_FCLK{n}_PERIPHERAL_DIVISOR0" VALUE="5"/>
        <PARAMETER NAME="PCW_FCLK{n}_PERIPHERAL_DIVISOR1" VALUE="2"/>
        <PARAMETER NAME="PCW_FPGA_FCLK{n}_ENABLE" VALUE="{int(n == 0)}"/>"""
    for n in range(4)
)


def handoff(
    *,
    vlnv: str = VLNV,
    address: int = CORE_ADDRESS,
    nbytes: int = 1 << ADDRESS_BITS,
) -> str:
    """XML of a Zynq-7000 system: processor, one core of `vlnv` at `address`, one clock."""
    kind = vlnv.split(":")[2]
    return f"""<?xml version="1.0" encoding="UTF-8" standalone="no" ?>
<EDKSYSTEM EDWVERSION="1.2" TIMESTAMP="Thu Jan  1 00:00:00 2026" VIVADOVERSION="2022.1">
  <SYSTEMINFO ARCH="zynq" DEVICE="7z020" NAME="vitral" PACKAGE="clg400" SPEEDGRADE="-1"/>
  <EXTERNALPORTS/>
  <EXTERNALINTERFACES/>
  <MODULES>
    <MODULE COREREVISION="1" FULLNAME="/core_0" HWVERSION="1.0" INSTANCE="core_0"
        IPTYPE="PERIPHERAL" IS_ENABLE="1" MODCLASS="PERIPHERAL" MODTYPE="{kind}" VLNV="{vlnv}">
      <PARAMETERS><PARAMETER NAME="C_S_AXI_BASEADDR" VALUE="{address:#x}"/></PARAMETERS>
      <PORTS>
        <PORT DIR="I" NAME="aclk" SIGIS="clk" SIGNAME="{PS}_FCLK_CLK0">
          <CONNECTIONS><CONNECTION INSTANCE="{PS}" PORT="FCLK_CLK0"/></CONNECTIONS>
        </PORT>
      </PORTS>
      <BUSINTERFACES>
        <BUSINTERFACE BUSNAME="{PS}_M_AXI_GP0" DATAWIDTH="32" NAME="s_axi" TYPE="SLAVE"
            VLNV="xilinx.com:interface:aximm:1.0"/>
      </BUSINTERFACES>
    </MODULE>
    <MODULE CONFIGURABLE="TRUE" COREREVISION="6" FULLNAME="/{PS}" HWVERSION="5.5" INSTANCE="{PS}"
        IPTYPE="PERIPHERAL" IS_ENABLE="1" IS_PL="FALSE" MODTYPE="processing_system7"
        VLNV="xilinx.com:ip:processing_system7:5.5">
      <PARAMETERS>{CLOCKS}
      </PARAMETERS>
      <PORTS>
        <PORT DIR="O" NAME="FCLK_CLK0" SIGIS="clk" SIGNAME="{PS}_FCLK_CLK0">
          <CONNECTIONS><CONNECTION INSTANCE="core_0" PORT="aclk"/></CONNECTIONS>
        </PORT>
      </PORTS>
      <BUSINTERFACES>
        <BUSINTERFACE BUSNAME="{PS}_M_AXI_GP0" DATAWIDTH="32" NAME="M_AXI_GP0" TYPE="MASTER"
            VLNV="xilinx.com:interface:aximm:1.0"/>
      </BUSINTERFACES>
      <MEMORYMAP>
        <MEMRANGE ADDRESSBLOCK="reg0" BASENAME="C_S_AXI_BASEADDR" BASEVALUE="{address:#x}"
            HIGHNAME="C_S_AXI_HIGHADDR" HIGHVALUE="{address + nbytes - 1:#x}" INSTANCE="core_0"
            IS_DATA="TRUE" IS_INSTRUCTION="FALSE" MASTERBUSINTERFACE="M_AXI_GP0"
            MEMTYPE="REGISTER" SLAVEBUSINTERFACE="s_axi"/>
      </MEMORYMAP>
      <PERIPHERALS><PERIPHERAL INSTANCE="core_0"/></PERIPHERALS>
    </MODULE>
  </MODULES>
</EDKSYSTEM>
"""

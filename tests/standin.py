"""A small memory-bus master in Verilog with the core's ports, to test simulators without a core.

On start it copies `insn_count` 16-byte records from `insn_base` to `out_base`, in bursts of 16
beats, one after another. The number in its `watchdog` register selects a way to break the protocol.
"""

from vitral.config import CoreConfig
from vitral.registers import MAGIC, register

__all__ = ["DEADLOCK", "DEFECTS", "standin_verilog"]

DEFECTS = {
    "page": "crosses a page",
    "long": "of 32 beats, at most 16",
    "drop": "AR changed before ARREADY",
    "payload": "W changed before WREADY",
    "early_last": "WLAST is 1 on beat 15 of 16",
    "no_last": "WLAST is 0 on beat 16 of 16",
    "size": "must be whole beats, INCR",
    "unaligned": "is no multiple of the beat",
}
"""What each defect makes the memory model say; number 1 on, in this order."""

DEADLOCK = len(DEFECTS) + 1
"""Number that makes it stop after the first burst, each stage waiting for another."""


def standin_verilog(config: CoreConfig) -> str:
    """Verilog text for the stand-in in `config`, which must have 64 data bits."""
    o = {name: register(name).offset for name in _NAMES}
    d = {name: f"(defect == {number})" for number, name in enumerate(DEFECTS, 1)}
    stuck = f"(defect == {DEADLOCK})"
    memories = _memories(config)
    return f"""

{memories}

module vitral_core(
  input aclk, input aresetn, output irq,
  input [11:0] s_axi_awaddr, input [2:0] s_axi_awprot, input s_axi_awvalid, output s_axi_awready,
  input [31:0] s_axi_wdata, input [3:0] s_axi_wstrb, input s_axi_wvalid, output s_axi_wready,
  output [1:0] s_axi_bresp, output reg s_axi_bvalid, input s_axi_bready,
  input [11:0] s_axi_araddr, input [2:0] s_axi_arprot, input s_axi_arvalid, output s_axi_arready,
  output reg [31:0] s_axi_rdata, output [1:0] s_axi_rresp, output reg s_axi_rvalid,
  input s_axi_rready,
  output m_axi_awid, output [31:0] m_axi_awaddr, output [3:0] m_axi_awregion,
  output [7:0] m_axi_awlen, output [2:0] m_axi_awsize, output [1:0] m_axi_awburst,
  output m_axi_awlock, output [3:0] m_axi_awcache, output [2:0] m_axi_awprot,
  output [3:0] m_axi_awqos, output [7:0] m_axi_awuser, output m_axi_awvalid, input m_axi_awready,
  output [63:0] m_axi_wdata, output [7:0] m_axi_wstrb, output m_axi_wlast, output m_axi_wvalid,
  input m_axi_wready,
  input m_axi_bid, input [1:0] m_axi_bresp, input m_axi_bvalid, output m_axi_bready,
  output m_axi_arid, output [31:0] m_axi_araddr, output [3:0] m_axi_arregion,
  output [7:0] m_axi_arlen, output [2:0] m_axi_arsize, output [1:0] m_axi_arburst,
  output m_axi_arlock, output [3:0] m_axi_arcache, output [2:0] m_axi_arprot,
  output [3:0] m_axi_arqos, output [7:0] m_axi_aruser, output m_axi_arvalid, input m_axi_arready,
  input m_axi_rid, input [63:0] m_axi_rdata, input [1:0] m_axi_rresp, input m_axi_rlast,
  input m_axi_rvalid, output m_axi_rready);

  // Register port: one write and one read at a time.
  reg [31:0] base, out, count, cycles, defect;
  reg done, error, busy;
  wire do_write = s_axi_awvalid & s_axi_wvalid & ~s_axi_bvalid;
  wire do_read = s_axi_arvalid & ~s_axi_rvalid;
  assign s_axi_awready = do_write;
  assign s_axi_wready = do_write;
  assign s_axi_arready = do_read;
  assign s_axi_bresp = 0;
  assign s_axi_rresp = 0;
  assign irq = done;
  wire start = do_write & (s_axi_awaddr == {o["control"]}) & s_axi_wdata[0];

  // Copy: AR, read beats into the buffer, AW, write beats, B.
  localparam IDLE = 0, AR = 1, R = 2, AW = 3, W = 4, B = 5, STUCK = 6;
  reg [2:0] state;
  reg [5:0] beat;
  reg [31:0] offset;
  reg [63:0] buffer [0:31];
  reg stalled;
  wire [31:0] left = count * 16 - offset;
  wire [31:0] room_in = 4096 - ((base + offset) & 4095);
  wire [31:0] room_out = 4096 - ((out + offset) & 4095);
  wire [31:0] limit = {d["long"]} ? 256 : 128;
  wire [31:0] a = left < limit ? left : limit;
  wire [31:0] b = (room_in < a && !{d["page"]}) ? room_in : a;
  wire [31:0] bytes = (room_out < b && !{d["page"]}) ? room_out : b;
  wire [7:0] len = bytes / 8 - 1;

  assign m_axi_arvalid = (state == AR) & ~({d["drop"]} & stalled);
  assign m_axi_araddr = base + offset + ({d["unaligned"]} ? 4 : 0);
  assign m_axi_arlen = len;
  assign m_axi_arsize = {d["size"]} ? 2 : 3;
  assign m_axi_arburst = 1;
  assign m_axi_awvalid = state == AW;
  assign m_axi_awaddr = out + offset;
  assign m_axi_awlen = len;
  assign m_axi_awsize = 3;
  assign m_axi_awburst = 1;
  assign m_axi_wvalid = state == W;
  assign m_axi_wdata = buffer[beat[4:0]] ^ {{63'b0, {d["payload"]} & stalled}};
  assign m_axi_wstrb = 8'hff;
  assign m_axi_wlast = (beat == len & ~{d["no_last"]}) | ({d["early_last"]} & beat + 1 == len);
  assign m_axi_rready = 1;
  assign m_axi_bready = 1;
  assign {{m_axi_awid, m_axi_awregion, m_axi_awlock, m_axi_awcache, m_axi_awprot, m_axi_awqos,
    m_axi_awuser, m_axi_arid, m_axi_arregion, m_axi_arlock, m_axi_arcache, m_axi_arprot,
    m_axi_arqos, m_axi_aruser}} = 0;

  always @(posedge aclk) begin
    if (s_axi_bready) s_axi_bvalid <= 0;
    if (s_axi_rready) s_axi_rvalid <= 0;
    if (do_write) begin
      s_axi_bvalid <= 1;
      case (s_axi_awaddr)
        {o["insn_base"]}: base <= s_axi_wdata;
        {o["insn_count"]}: count <= s_axi_wdata;
        {o["out_base"]}: out <= s_axi_wdata;
        {o["irq_status"]}: done <= 0;
        {o["watchdog"]}: defect <= s_axi_wdata;
        default: ;
      endcase
    end
    if (do_read) begin
      s_axi_rvalid <= 1;
      case (s_axi_araddr)
        {o["id"]}: s_axi_rdata <= {MAGIC};
        {o["digest"]}: s_axi_rdata <= 32'h{config.digest32:08x};
        {o["status"]}: s_axi_rdata <= {{16'd0, error ? 8'd8 : 8'd0, 5'd0, error, done, busy}};
        {o["load_state"]}: s_axi_rdata <= {{8'd3, 24'd5}};
        {o["compute_state"]}: s_axi_rdata <= {{8'd2, 24'd17}};
        {o["store_state"]}: s_axi_rdata <= {{8'd1, 24'd0}};
        {o["count_cycles"]}: s_axi_rdata <= cycles;
        default: s_axi_rdata <= 0;
      endcase
    end
    stalled <= (m_axi_arvalid & ~m_axi_arready) | (m_axi_wvalid & ~m_axi_wready);
    if (busy) cycles <= cycles + 1;
    case (state)
      AR: if (m_axi_arvalid & m_axi_arready) begin state <= R; beat <= 0; end
      R: if (m_axi_rvalid) begin
        buffer[beat[4:0]] <= m_axi_rdata;
        beat <= beat + 1;
        error <= error | m_axi_rresp[1];
        if (m_axi_rlast) begin state <= AW; beat <= 0; end
      end
      AW: if (m_axi_awready) state <= W;
      W: if (m_axi_wready) begin
        beat <= beat + 1;
        if (beat == len) state <= B;
      end
      B: if (m_axi_bvalid) begin
        offset <= offset + bytes;
        error <= error | m_axi_bresp[1];
        state <= {stuck} ? STUCK : left == bytes ? IDLE : AR;
        if (left == bytes && !{stuck}) begin done <= 1; busy <= 0; end
      end
      default: ;
    endcase
    if (start) begin
      state <= AR; offset <= 0; cycles <= 1; busy <= 1; done <= 0; error <= 0;
    end
    if (~aresetn || do_write && s_axi_awaddr == {o["control"]} && s_axi_wdata[1]) begin
      state <= IDLE; busy <= 0; done <= 0; error <= 0; stalled <= 0;
      if (~aresetn) begin s_axi_bvalid <= 0; s_axi_rvalid <= 0; end
    end
  end

  uop uop (.clk(aclk));
  inp inp (.clk(aclk));
  wgt wgt (.clk(aclk));
  acc acc (.clk(aclk));
  param param (.clk(aclk));
endmodule
"""


_NAMES = (
    *("control", "insn_base", "insn_count", "out_base", "irq_status", "id", "digest", "status"),
    *("load_state", "compute_state", "store_state", "count_cycles", "watchdog"),
)


def _memories(config: CoreConfig) -> str:
    """Modules uop, inp, wgt, acc and param with memories named and packed as the core's are."""
    layout, banks = config.layout, config.acc_banks
    lanes = config.data_bits // 32
    names = {
        "uop": [_array(f"lane{n}", 32, layout.uop_depth // lanes) for n in range(lanes)],
        "acc": [
            _array(f"bank_{n}", 8 * layout.acc_bytes, layout.acc_depth // banks)
            for n in range(banks)
        ],
        "inp": [_array("memory", 8 * layout.inp_bytes, layout.inp_depth)],
        "wgt": [_array("memory", 8 * layout.wgt_bytes, layout.wgt_depth)],
        "param": [_array("memory", 8 * layout.param_bytes, layout.param_depth)],
    }
    return "".join(
        f"module {name}(input clk);\n{''.join(arrays)}endmodule\n" for name, arrays in names.items()
    )


def _array(name: str, bits: int, depth: int) -> str:
    return f"  reg [{bits - 1}:0] {name} [{depth - 1}:0];\n"

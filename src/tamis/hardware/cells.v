// The cells of an ECP5 that Yosys maps circuits to, for the simulation of a netlist. Registers and
// LUT-RAM have no initial value here: the simulator gives them random bits. A circuit that needs
// one cell more than these does not compile.

module LUT4 (input A, B, C, D, output Z);
  parameter [15:0] INIT = 16'h0000;
  assign Z = INIT[{D, C, B, A}];
endmodule

module PFUMX (input ALUT, BLUT, C0, output Z);
  assign Z = C0 ? ALUT : BLUT;
endmodule

module L6MUX21 (input D0, D1, SD, output Z);
  assign Z = SD ? D1 : D0;
endmodule

// Half of a carry cell. "YES" keeps the carry out of the sum, and of the carry that is generated.
module CARRY (input A, B, C, D, CIN, output S, COUT);
  parameter [15:0] INIT = 16'h0000;
  parameter INJECT1 = "YES";
  wire sum = INIT[{D, C, B, A}];
  wire generated = INJECT1 == "YES" ? 1'b0 : INIT[{2'b00, B, A}];
  assign S = sum ^ (INJECT1 == "YES" ? 1'b0 : CIN);
  assign COUT = sum ? CIN : generated;
endmodule

module CCU2C (
    input CIN, A0, B0, C0, D0, A1, B1, C1, D1,
    output S0, S1, COUT
);
  parameter [15:0] INIT0 = 16'h0000;
  parameter [15:0] INIT1 = 16'h0000;
  parameter INJECT1_0 = "YES";
  parameter INJECT1_1 = "YES";
  wire between;
  CARRY #(.INIT(INIT0), .INJECT1(INJECT1_0)) low (A0, B0, C0, D0, CIN, S0, between);
  CARRY #(.INIT(INIT1), .INJECT1(INJECT1_1)) high (A1, B1, C1, D1, between, S1, COUT);
endmodule

module TRELLIS_FF (input CLK, LSR, CE, DI, output reg Q);
  parameter GSR = "ENABLED";
  parameter CEMUX = "1";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter SRMODE = "LSR_OVER_CE";
  parameter REGSET = "RESET";
  initial
    if (CLKMUX != "CLK" || LSRMUX != "LSR" || SRMODE != "LSR_OVER_CE")
      $fatal(1, "a register that cells.v has no model of");
  wire enabled = CEMUX == "CE" ? CE : CEMUX == "INV" ? ~CE : 1'b1;
  always @(posedge CLK)
    if (LSR) Q <= REGSET == "SET";
    else if (enabled) Q <= DI;
endmodule

module TRELLIS_DPR16X4 (
    input [3:0] DI, WAD, RAD,
    input WRE, WCK,
    output [3:0] DO
);
  parameter WCKMUX = "WCK";
  parameter WREMUX = "WRE";
  parameter [63:0] INITVAL = 64'h0;
  initial
    if (WCKMUX != "WCK") $fatal(1, "a LUT-RAM that cells.v has no model of");
  wire write = WREMUX == "INV" ? ~WRE : WRE;
  reg [3:0] rows[15:0];
  always @(posedge WCK) if (write) rows[WAD] <= DI;
  assign DO = rows[RAD];
endmodule

create_clock -name oscillator -period 20.000 [get_ports clk_clk]
derive_pll_clocks
derive_clock_uncertainty

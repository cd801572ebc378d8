create_clock -name oscillator -period @{period_ns} [get_ports clk_clk]
derive_pll_clocks
derive_clock_uncertainty

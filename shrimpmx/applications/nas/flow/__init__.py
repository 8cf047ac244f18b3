"""The flow of a gas in a cube that BT, SP and LU compute: cells of the grid, their state, and the
right-hand side of the equations."""

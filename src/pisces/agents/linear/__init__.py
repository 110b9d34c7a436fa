"""Linear policies for linear-quadratic control."""

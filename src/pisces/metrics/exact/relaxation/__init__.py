"""Solution of the linear system of fixed couplings: sweeps, their acceleration, and a direct method."""

"""SAC + DrQ on Distracting Control."""

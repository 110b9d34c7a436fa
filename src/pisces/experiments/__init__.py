"""One file per benchmark: configs, presets, and how to run them."""

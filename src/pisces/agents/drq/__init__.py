"""SAC with image augmentation (DrQ) for pixel control."""

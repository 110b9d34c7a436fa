"""DeepMind Control tasks with distracting backgrounds, colors and cameras."""

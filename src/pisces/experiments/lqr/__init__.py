"""Linear-quadratic control with distractors."""

"""Behavior cloning of discrete actions from images, with an optional behavioral loss."""

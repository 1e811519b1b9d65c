"""Ascend Runner: pinned Ascend images and the jobs that run in them."""

"""The image builder: locks, Dockerfiles, builds, and what is done with an image afterwards."""

"""What others write, read into values: versions and the tags of images."""

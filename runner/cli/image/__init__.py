"""The command line of the image builder, one file a command."""

"""Speed, against peers and against parts of the same machine. Not imported by mclab."""

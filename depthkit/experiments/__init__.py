"""What is built from trials: measuring depth; later also checks, replays, merging, sampling."""

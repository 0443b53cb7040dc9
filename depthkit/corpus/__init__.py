"""The corpus on disk: append, query, derived frames; and reading other people's results."""

from depthkit.corpus.store import Corpus
from depthkit.corpus.trajectory import Step, Trajectory, read_trajectory

__all__ = ["Corpus", "Step", "Trajectory", "read_trajectory"]

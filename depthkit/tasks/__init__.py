"""Harbor task directories: load them, count their work, write calibration tasks."""

from depthkit.tasks.load import LoadedTask, load_task, load_tasks
from depthkit.tasks.text import directory_digest
from depthkit.tasks.work import work_of_script

__all__ = ["LoadedTask", "directory_digest", "load_task", "load_tasks", "work_of_script"]

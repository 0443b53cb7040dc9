"""Deep tasks written by doing: seed environments and the author that works in them (Section 3.3).

:mod:`.session` is the protocol that every author speaks, :mod:`.world` its containers,
:mod:`.draft` the task as it is being written, :mod:`.acceptance` what it must be in the end.
"""

"""Exceptions and warnings of the package."""


class StarfishError(Exception):
    """Base class of all errors of Starfish."""


class InvalidError(StarfishError, ValueError):
    """An argument is invalid: a description, a plan, a pattern or an option.

    The message names the argument, with file and line if it is in a file, and the expected form. Nothing was
    run.
    """


class FileError(StarfishError, OSError):
    """A file cannot be read or written; the message contains its name and the reason."""


class SimulationError(StarfishError, RuntimeError):
    """A simulation failed, or its result is wrong; the message contains the simulated case and the reason."""


class IncompleteWarning(UserWarning):
    """A recording is incomplete; the message contains the recorded and the counted number of requests."""

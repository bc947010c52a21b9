"""What can go wrong."""


class StarfishError(Exception):
    """Anything Starfish itself complains of; the others here are kinds of it."""


class InvalidError(StarfishError, ValueError):
    """What was asked for makes no sense: a description, a plan, a pattern or an option.

    The message names the thing, with file and line where there is one, and says what was expected. Nothing has
    been run.
    """


class FileError(StarfishError, OSError):
    """A file cannot be read or written; the message names it and says why."""


class SimulationError(StarfishError, RuntimeError):
    """A simulation failed, or its result cannot be believed; the message says which and why."""


class IncompleteWarning(UserWarning):
    """A recording lacks a part of what happened; the message gives both counts."""

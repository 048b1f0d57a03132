"""The exceptions msmigrate raises for its users' mistakes and its workers' failures.

MsmigrateError            anything msmigrate can explain in one line
├── BadInput              the user's input cannot be used (exit code 2)
│   ├── BadCheckpoint     a checkpoint file is damaged, hostile, or not of a known form
│   ├── BadDestination    the output cannot be written, or exists already
│   ├── BadRecipe         the recipe has an unknown key, a wrong type, or a value nobody can run
│   ├── BadTrace          a trace folder is incomplete or belongs to another recipe
│   ├── NotInstalled      a package that a command needs is not installed for this Python
│   ├── NotTrusted        a data file names what only the user may name: code to run, arguments, a place to read
│   └── UnknownRow        the mapping table has no row of that name
├── Ambiguous             several answers are possible and guessing would be wrong (exit code 2)
├── Unsupported           MindSpore (or msmigrate) has no counterpart for what is needed (exit code 2)
│   └── DoesNotCompile    MindSpore's graph mode does not compile the user's code
└── WorkerFailed          a framework process stopped before it had written its result (exit code 2)
"""

from __future__ import annotations


class MsmigrateError(Exception):
    """Anything msmigrate can explain in one line; the message says what, where, and what to do next.

    command: the command that raised it, such as `msmigrate train`; empty if a program called the function.
    """

    command = ""


class BadInput(MsmigrateError):
    """The user's input cannot be used."""


class BadCheckpoint(BadInput):
    """A checkpoint file is damaged, hostile, or not of a known form."""


class BadDestination(BadInput):
    """The output cannot be written, or exists already."""


class BadRecipe(BadInput):
    """The recipe has an unknown key, a wrong type, or a value nobody can run."""


class BadTrace(BadInput):
    """A trace folder is incomplete or belongs to another recipe."""


class NotInstalled(BadInput):
    """A package that a command needs is not installed for this Python; the message has the line that installs it."""


class NotTrusted(BadInput):
    """A data file names what only the user may name: code to run, arguments to build with, a place to read from.

    add: what the user adds to the command line to allow it; empty if nothing there does.
    """

    def __init__(self, message: str, add: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.add = add


class UnknownRow(BadInput):
    """The mapping table has no row of that name."""


class Ambiguous(MsmigrateError):
    """Several answers are possible and guessing would be wrong."""


class Unsupported(MsmigrateError):
    """MindSpore (or msmigrate) has no counterpart for what is needed.

    detail: the message without the row. row: the torch name. argument, value, why, remedy: what `detail` is made of;
    why and remedy are None where the mapping table does not say. All but `detail` are None unless the message is about
    the value of an argument.
    """

    def __init__(
        self,
        detail: str,
        *,
        row: str | None = None,
        argument: str | None = None,
        value: object = None,
        why: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(detail if row is None else f"{row}: {detail}")
        self.detail, self.row, self.argument, self.value = detail, row, argument, value
        self.why, self.remedy = why, remedy


class DoesNotCompile(Unsupported):
    """MindSpore's graph mode does not compile the user's code; the message has the line, and what to write.

    by_target: whether all that is wrong is that this machine's target lacks a kernel.
    """

    def __init__(self, text: str, by_target: bool = False) -> None:
        super().__init__(text)
        self.by_target = by_target


class WorkerFailed(MsmigrateError):
    """A framework process stopped before it had written its result."""

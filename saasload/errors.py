"""The error tree, split by what the caller does next.

SaasloadError
├── UsageError              fix the arguments or the configuration; nothing was sent        (exit 2)
│   └── ConfigError         a profile or job file says something impossible
├── TargetError             the target cannot be used: down, sign-in refused, not there     (exit 2 at start, 3 later)
│   ├── SignInError         the target does not accept who we say we are
│   └── BusyError           the target asks to come back later
├── TransportError          one call failed below HTTP; the driver decides
│   ├── NotSentError        the request never reached the target: send it again
│   ├── NoTokenError        the target takes no token of ours against forgery: nothing was executed, nothing can be
│   └── InDoubtError        it may have been applied: look before sending again
├── DecodeError             a reply that cannot be read; its rows are in doubt
└── RunFolderError          the run folder cannot be written or read                        (exit 2 at start, 3 later)
    └── NoRoomError         the disk is full: what was begun stays, and goes on with room   (exit 3)
"""


class SaasloadError(Exception):
    """Anything saasload raises on purpose; the message is one line for a person."""


class UsageError(SaasloadError):
    """Arguments or input that cannot work; nothing was sent."""


class ConfigError(UsageError):
    """A profile, job or settings file says something impossible."""


class TargetError(SaasloadError):
    """The target cannot be used: down, refusing, or not what the profile says."""


class SignInError(TargetError):
    """The target does not accept the token."""


class BusyError(TargetError):
    """The target asks to come back later; `retry_after_s` says when, where it does."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        """Take the line for a person, and the wait the target asks for."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TransportError(SaasloadError):
    """One call failed below HTTP."""


class NotSentError(TransportError):
    """The request never reached the target: send it again; `wait_s` says when, where that is known."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        """Take the line for a person, and the wait."""
        super().__init__(message)
        self.wait_s = wait_s


class NoTokenError(TransportError):
    """The target takes no token of ours against forgery: nothing was executed, and nothing can be."""


class InDoubtError(TransportError):
    """It may have been applied: look before sending again."""


class DecodeError(SaasloadError):
    """A reply that cannot be read; the rows it should answer for are in doubt."""


class RunFolderError(SaasloadError):
    """The run folder cannot be written or read."""


class NoRoomError(RunFolderError):
    """The disk is full; the run has begun, and goes on once there is room."""

"""Tell other programs how a load goes: Prometheus metrics on a port, OpenTelemetry by the environment."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from saasload.clock import Clock
from saasload.errors import UsageError
from saasload.exchange import Recorder
from saasload.load import Live, Observer
from saasload.prepare import Prepared
from saasload.run.report import Report
from saasload.telemetry.sight import Sight

__all__ = ["open_telemetry"]


@contextlib.contextmanager
def open_telemetry(metrics_port: int | None, say: Callable[[str], None]) -> Iterator[Observer]:
    """Give who looks on at a load: nobody, unless a port or the environment asks for it.

    Raises UsageError where the port cannot be used, or where the extra for it is not installed.
    """
    sight = Sight()
    observers: list[Observer] = [sight]
    with contextlib.ExitStack() as stack:
        if metrics_port is not None:
            try:
                from saasload.telemetry.prometheus import serve_metrics  # noqa: PLC0415 an extra
            except ImportError as error:
                raise UsageError("--metrics-port: not installed; pip install 'saasload[metrics]'") from error
            stack.enter_context(serve_metrics(metrics_port, sight, say))
        if any(name.startswith("OTEL_") for name in os.environ):
            from saasload.telemetry.environment import open_otel  # noqa: PLC0415 only where it may be wanted

            observers += stack.enter_context(open_otel(os.environ, sight, say))
        yield _Several(observers)


class _Several(Observer):
    """Observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def recording(self, recorder: Recorder, prepared: Prepared, clock: Clock) -> Recorder:
        for observer in self._observers:
            recorder = observer.recording(recorder, prepared, clock)
        return recorder

    def begun(self, live: Live, prepared: Prepared) -> None:
        for observer in self._observers:
            observer.begun(live, prepared)

    def ended(self, report: Report) -> None:
        for observer in self._observers:
            observer.ended(report)

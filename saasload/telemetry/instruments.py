"""The metrics as OpenTelemetry's observable instruments."""

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from saasload.telemetry.sight import METRICS, Metric, Sight


def observe(meter: Meter, sight: Sight) -> None:
    """Let a meter read all metrics whenever it exports."""
    for metric in METRICS:
        create = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        create(f"saasload.{metric.name}", [_reader(metric, sight)], unit=metric.unit, description=metric.words)


def _reader(metric: Metric, sight: Sight) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(labels)) for labels, value in sight.read(metric)]

    return read

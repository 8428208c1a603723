"""Wire formats, sans-IO: rows → bytes → outcomes. One file a format, listed here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from saasload.profile import EntitySpec, Mode, PlatformProfile
from saasload.wire.base import Refusal, WireFormat
from saasload.wire.batch import BatchFormat
from saasload.wire.insert import InsertFormat
from saasload.wire.xml import XmlFormat

FORMATS: Mapping[str, Callable[..., WireFormat]] = MappingProxyType(
    {"insert": InsertFormat, "batch": BatchFormat, "xml": XmlFormat}
)


def wire_format(profile: PlatformProfile, entity: EntitySpec, mode: Mode) -> WireFormat:
    """Make the format by which an entity travels in a mode that its profile lists."""
    return FORMATS[mode](profile, entity, getattr(entity, mode))


__all__ = ["FORMATS", "Refusal", "WireFormat", "wire_format"]

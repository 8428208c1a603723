"""Metadata: what there is, as EDMX and as a service document, written from the table of entities."""

from functools import lru_cache
from xml.sax.saxutils import quoteattr

from mock_server.entities import EDM, ENTITIES, Entity, Field

NAMESPACE = "Platform.Models"

_M = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"


@lru_cache(maxsize=32)
def metadata(service: str) -> bytes:
    """Return the EDMX of a service, of all of them where none is named."""
    entities = [one for one in ENTITIES.values() if service in {"", one.service}]
    services = sorted({one.service for one in entities})
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<edmx:Edmx Version="1.0" xmlns:edmx="http://schemas.microsoft.com/ado/2007/06/edmx">',
        f'<edmx:DataServices m:DataServiceVersion="2.0" xmlns:m="{_M}">',
        f'<Schema Namespace="{NAMESPACE}" xmlns="http://schemas.microsoft.com/ado/2008/09/edm">',
        *(_entity_type(one) for one in entities),
        *(_association(one, name, line) for one in entities for name, line in one.lines.items()),
        *(_container(name, [one for one in entities if one.service == name]) for name in services),
        "</Schema></edmx:DataServices></edmx:Edmx>",
    ]
    return "\n".join(lines).encode()


@lru_cache(maxsize=4096)
def service_document(service: str, address: str) -> bytes:
    """Return the list of a service's sets."""
    sets = (one.set for one in ENTITIES.values() if one.service == service)
    collections = "".join(
        f'<collection href="{name}"><atom:title>{name}</atom:title></collection>' for name in sorted(sets)
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<service xml:base={quoteattr(address + "/")}'
        ' xmlns="http://www.w3.org/2007/app" xmlns:atom="http://www.w3.org/2005/Atom">'
        f"<workspace><atom:title>Default</atom:title>{collections}</workspace></service>"
    ).encode()


def _entity_type(entity: Entity) -> str:
    lines = [f'<EntityType Name="{entity.name}"><Key><PropertyRef Name="{entity.key}"/></Key>']
    lines += [_property(one, nullable="false" if one.name == entity.key else "true") for one in entity.fields.values()]
    lines += [
        f'<NavigationProperty Name="{name}" Relationship="{NAMESPACE}.{entity.name}_{name}"'
        f' FromRole="{entity.name}" ToRole="{name}"/>'
        for name in entity.lines
    ]
    return "".join([*lines, "</EntityType>"])


def _property(one: Field, *, nullable: str) -> str:
    if one.kind == "collection":
        return ""
    longest = f' MaxLength="{one.cap}"' if one.cap else ""
    return f'<Property Name="{one.name}" Type="{EDM[one.kind]}" Nullable="{nullable}"{longest}/>'


def _association(entity: Entity, name: str, line: str) -> str:
    return (
        f'<Association Name="{entity.name}_{name}">'
        f'<End Role="{entity.name}" Type="{NAMESPACE}.{entity.name}" Multiplicity="1"/>'
        f'<End Role="{name}" Type="{NAMESPACE}.{line}" Multiplicity="*"/></Association>'
    )


def _container(service: str, entities: list[Entity]) -> str:
    lines = [f'<EntityContainer Name="{service}">']
    lines += [f'<EntitySet Name="{one.set}" EntityType="{NAMESPACE}.{one.name}"/>' for one in entities]
    lines += [
        f'<AssociationSet Name="{one.name}_{name}Set" Association="{NAMESPACE}.{one.name}_{name}">'
        f'<End Role="{one.name}" EntitySet="{one.set}"/><End Role="{name}" EntitySet="{ENTITIES[line].set}"/>'
        "</AssociationSet>"
        for one in entities
        for name, line in one.lines.items()
    ]
    return "".join([*lines, "</EntityContainer>"])

"""Named and typed values, which facts and errors are made of."""

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Union, get_args, get_origin


class Fields:
    """Base of facts and errors: the annotated names of a subclass are its fields, except those with ``ClassVar``."""

    fields: ClassVar[dict[str, Any]] = {}  # the types by name, also those of the bases
    reasons: ClassVar[dict[str, str]] = {}  # those with one of a few values, or with words beside these: whose it is

    def __init_subclass__(cls) -> None:
        own = {name: kind for name, kind in inspect.get_annotations(cls).items() if "ClassVar" not in str(kind)}
        cls.fields = {**cls.fields, **own}
        cls.reasons = {
            **cls.reasons,
            **{name: cls.__name__ for name, kind in own.items() if literals(kind)},
        }


def literals(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401  # a type, or several
    """Return the values that a type names, also where any words may stand in their place."""
    parts = get_args(kind) if get_origin(kind) is Union else (kind,)
    return next((get_args(part) for part in parts if get_origin(part) is Literal), ())


def set_fields(thing: Fields, values: Sequence[object], named: dict[str, object]) -> None:
    """Store the arguments of a fact or an error under the names of its fields."""
    kind = type(thing)
    given = dict(zip(kind.fields, values, strict=False)) | named
    missing = [name for name in kind.fields if name not in given and not hasattr(kind, name)]
    if missing or given.keys() - kind.fields.keys() or len(values) + len(named) > len(given):
        raise TypeError(f"{kind.__name__} takes {', '.join(kind.fields) or 'nothing'}")
    vars(thing).update(given)


def field_values(thing: Fields) -> dict[str, Any]:
    """Return the fields of a fact or an error, in the order of their declaration."""
    return {name: getattr(thing, name) for name in type(thing).fields}


def reason_ids(thing: Fields) -> dict[str, str]:
    """Return the ids of the texts of its reasons, by the names of their fields."""
    return {name: f"{owner}.{getattr(thing, name)}" for name, owner in type(thing).reasons.items()}

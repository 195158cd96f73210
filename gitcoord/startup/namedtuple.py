"""A NamedTuple that costs nothing at start-up.

`typing.NamedTuple` and `collections.namedtuple` load more modules than a whole hook may. Checkers see the real
NamedTuple; at run time a class gets the same constructor, attributes, equality and `_replace` from the C getter.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter

    class NamedTuple(tuple):
        __slots__ = ()
        _fields = ()
        _defaults = {}
        _getter = _tuplegetter

        def __init_subclass__(cls):
            if "_fields" in cls.__dict__:
                return  # written out in the bundle
            fields = tuple(cls.__annotations__)
            cls._fields = fields
            own = cls.__dict__
            cls._defaults = {f: own[f] for f in fields if f in own}
            for index, name in enumerate(fields):
                setattr(cls, name, _tuplegetter(index, ""))

        def __new__(cls, *args, **named):
            fields = cls._fields
            if not named:
                lacking = len(fields) - len(args)
                if lacking == 0:
                    return tuple.__new__(cls, args)
                if 0 < lacking <= len(cls._defaults):  # fields with defaults are the last ones
                    return tuple.__new__(cls, (*args, *[*cls._defaults.values()][-lacking:]))
            values = list(args)
            for name in fields[len(args) :]:
                if name in named:
                    values.append(named.pop(name))
                elif name in cls._defaults:
                    values.append(cls._defaults[name])
                else:
                    raise TypeError(f"{cls.__name__}: '{name}' is missing")
            if named or len(values) > len(fields):
                raise TypeError(f"{cls.__name__}: too many values: {[*named] or values[len(fields) :]}")
            return tuple.__new__(cls, values)

        @classmethod
        def _make(cls, values):
            return tuple.__new__(cls, values)

        def _replace(self, **named):
            values = [named.pop(name, value) for name, value in zip(self._fields, self)]
            if named:
                raise TypeError(f"{type(self).__name__}: no such fields: {[*named]}")
            return tuple.__new__(type(self), values)

        def _asdict(self):
            return dict(zip(self._fields, self))

        def __repr__(self):
            inner = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({inner})"

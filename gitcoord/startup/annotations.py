"""Names for annotations that cost nothing at start-up.

`typing` and `collections.abc` load more modules than a whole hook may. Checkers see the real names; at run time each is one empty
class, since nothing evaluates an annotation.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable as Callable
    from collections.abc import Collection as Collection
    from collections.abc import Iterable as Iterable
    from collections.abc import Iterator as Iterator
    from collections.abc import Mapping as Mapping
    from collections.abc import Sequence as Sequence
    from typing import Any as Any
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
else:

    class Any:
        def __class_getitem__(cls, what):
            return cls

    Callable = Collection = Iterable = Iterator = Mapping = Protocol = Sequence = Any

    def TypeVar(name, **_):
        return Any

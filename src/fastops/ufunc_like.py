"""What makes an object look like a ufunc of NumPy: its name, signature, methods and attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


def _method(name: str) -> Callable[..., Any]:
    """That of a ufunc, with NumPy's name, signature and docstring."""

    @wraps(getattr(np.ufunc, name))
    def method(self: UfuncLike, *args: Any, **kwargs: Any) -> Any:
        return self._any(name, *args, **kwargs)

    return method


class UfuncLike:
    """For a callable in the place of the ufunc `numpy.<name>`."""

    def __init__(self, name: str, prototype: Callable[..., Any]):
        """`prototype` has the signature and the docstring."""
        self.__name__ = self.__qualname__ = name
        self.__module__ = "fastops"  # where pickle finds it
        self.__doc__ = inspect.cleandoc(prototype.__doc__ or "")
        parameters = inspect.signature(prototype).parameters.values()
        self.__signature__ = inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])
        self._numpys: np.ufunc = getattr(np, name)

    def _any(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Any arguments, to the ufunc or to one of its methods."""
        raise NotImplementedError

    reduce, accumulate, reduceat, outer, at = map(_method, ("reduce", "accumulate", "reduceat", "outer", "at"))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """So that `isinstance` takes it for a ufunc, as pandas' `apply` and others ask."""
        return np.ufunc

    def __getattr__(self, name: str) -> Any:  # nin, types, resolve_dtypes …
        return getattr(object.__getattribute__(self, "_numpys"), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._numpys)})

    def __repr__(self) -> str:
        return f"<fastops ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__

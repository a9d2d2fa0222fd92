"""What type checkers and editors see of `mod`, `remainder` and `fmod`: a ufunc of NumPy, the attribute `fmod`, and the result's dtype where
the operands tell it. At run time they are objects of `dispatch.Remainder`."""

from types import EllipsisType
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

_Integer = TypeVar("_Integer", np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
_Float = TypeVar("_Float", np.float16, np.float32, np.float64)
_Number = np.int8 | np.int16 | np.int32 | np.int64 | np.uint8 | np.uint16 | np.uint32 | np.uint64 | np.float16 | np.float32 | np.float64
_Array = TypeVar("_Array", bound=NDArray[Any])
_Scalar = np.generic | complex | str | bytes

class _Keywords(TypedDict, total=False):
    where: ArrayLike
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"]
    order: Literal["K", "A", "C", "F"]
    subok: bool

class _ModKeywords(_Keywords, total=False):
    fmod: bool | Literal[0, 1] | np.bool | np.integer[Any]

class _AllKeywords(_Keywords, total=False):
    """Also those that ask for another dtype."""

    dtype: DTypeLike | None
    signature: str | tuple[Any, ...] | None

class _AllModKeywords(_AllKeywords, _ModKeywords, total=False): ...

class _Binary(np.ufunc):  # type: ignore[misc]  # final; NumPy's own stubs do the same
    @property
    def nin(self) -> Literal[2]: ...
    @property
    def nout(self) -> Literal[1]: ...
    @property
    def nargs(self) -> Literal[3]: ...
    @property
    def identity(self) -> None: ...
    @property
    def signature(self) -> None: ...

# np.float64, which for type checkers is a float too, comes first: it widens the others.
class Remainder(_Binary):  # type: ignore[misc]
    @property
    def __name__(self) -> Literal["remainder"]: ...
    @overload
    def __call__(self, x1: NDArray[_Number], x2: np.float64, /, out: None = None, **keywords: Unpack[_ModKeywords]) -> NDArray[np.float64]:  # type: ignore[overload-overlap]
        """The remainder of floored division, element by element: it has the sign of the divisor. As `numpy.remainder`; `fmod=1` gives
        that of truncated division."""
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, x1: np.float64, x2: NDArray[_Number], /, out: None = None, **keywords: Unpack[_ModKeywords]
    ) -> NDArray[np.float64]: ...
    @overload
    def __call__(
        self, x1: NDArray[_Float], x2: NDArray[_Float] | _Float | float, /, out: None = None, **keywords: Unpack[_ModKeywords]
    ) -> NDArray[_Float]: ...
    @overload
    def __call__(
        self, x1: _Float | float, x2: NDArray[_Float], /, out: None = None, **keywords: Unpack[_ModKeywords]
    ) -> NDArray[_Float]: ...
    @overload
    def __call__(
        self, x1: NDArray[_Integer], x2: NDArray[_Integer] | _Integer | int, /, out: None = None, **keywords: Unpack[_ModKeywords]
    ) -> NDArray[_Integer]: ...
    @overload
    def __call__(
        self, x1: _Integer | int, x2: NDArray[_Integer], /, out: None = None, **keywords: Unpack[_ModKeywords]
    ) -> NDArray[_Integer]: ...
    @overload
    def __call__(self, x1: _Float, x2: _Float, /, out: None = None, **keywords: Unpack[_ModKeywords]) -> _Float: ...
    @overload
    def __call__(self, x1: _Integer, x2: _Integer, /, out: None = None, **keywords: Unpack[_ModKeywords]) -> _Integer: ...
    @overload
    def __call__(self, x1: _Scalar, x2: _Scalar, /, out: None = None, **keywords: Unpack[_AllModKeywords]) -> Any: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: _Array | tuple[_Array], **keywords: Unpack[_AllModKeywords]) -> _Array: ...
    @overload
    def __call__(
        self, x1: ArrayLike, x2: NDArray[Any], /, out: EllipsisType | None = None, **keywords: Unpack[_AllModKeywords]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x1: NDArray[Any], x2: ArrayLike, /, out: EllipsisType | None = None, **keywords: Unpack[_AllModKeywords]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, /, out: EllipsisType | None = None, **keywords: Unpack[_AllModKeywords]
    ) -> NDArray[Any]: ...

class Fmod(_Binary):  # type: ignore[misc]
    @property
    def __name__(self) -> Literal["fmod"]: ...
    @overload
    def __call__(self, x1: NDArray[_Number], x2: np.float64, /, out: None = None, **keywords: Unpack[_Keywords]) -> NDArray[np.float64]:  # type: ignore[overload-overlap]
        """The remainder of truncated division, element by element: it has the sign of the dividend. As `numpy.fmod`."""
    @overload
    def __call__(self, x1: np.float64, x2: NDArray[_Number], /, out: None = None, **keywords: Unpack[_Keywords]) -> NDArray[np.float64]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, x1: NDArray[_Float], x2: NDArray[_Float] | _Float | float, /, out: None = None, **keywords: Unpack[_Keywords]
    ) -> NDArray[_Float]: ...
    @overload
    def __call__(self, x1: _Float | float, x2: NDArray[_Float], /, out: None = None, **keywords: Unpack[_Keywords]) -> NDArray[_Float]: ...
    @overload
    def __call__(
        self, x1: NDArray[_Integer], x2: NDArray[_Integer] | _Integer | int, /, out: None = None, **keywords: Unpack[_Keywords]
    ) -> NDArray[_Integer]: ...
    @overload
    def __call__(
        self, x1: _Integer | int, x2: NDArray[_Integer], /, out: None = None, **keywords: Unpack[_Keywords]
    ) -> NDArray[_Integer]: ...
    @overload
    def __call__(self, x1: _Float, x2: _Float, /, out: None = None, **keywords: Unpack[_Keywords]) -> _Float: ...
    @overload
    def __call__(self, x1: _Integer, x2: _Integer, /, out: None = None, **keywords: Unpack[_Keywords]) -> _Integer: ...
    @overload
    def __call__(self, x1: _Scalar, x2: _Scalar, /, out: None = None, **keywords: Unpack[_AllKeywords]) -> Any: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: _Array | tuple[_Array], **keywords: Unpack[_AllKeywords]) -> _Array: ...
    @overload
    def __call__(
        self, x1: ArrayLike, x2: NDArray[Any], /, out: EllipsisType | None = None, **keywords: Unpack[_AllKeywords]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x1: NDArray[Any], x2: ArrayLike, /, out: EllipsisType | None = None, **keywords: Unpack[_AllKeywords]
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self, x1: ArrayLike, x2: ArrayLike, /, out: EllipsisType | None = None, **keywords: Unpack[_AllKeywords]
    ) -> NDArray[Any]: ...

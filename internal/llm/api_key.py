"""Keys that cannot be printed by accident."""


class ApiKey:
    """A key. Only `reveal` gives it; `repr`, `str` and formatting never do."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def hide_in(self, text: str) -> str:
        """Return the text without the key, should a provider have quoted it."""
        return text.replace(self._value, "…") if self._value else text

    @property
    def usable(self) -> bool:
        """Whether it can stand in an HTTP header."""
        value = self._value
        return bool(value) and value.isascii() and value.isprintable() and " " not in value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('…')" if self._value else "Secret('')"

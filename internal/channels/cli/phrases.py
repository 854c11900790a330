"""Messages of the commands about people, from the `cli` catalogue. Standard library only."""

from internal.i18n.catalog import Language, MessageCatalog


class Phrases(MessageCatalog):
    """The sentences of one language."""

    def __init__(self, language: Language = "en") -> None:
        super().__init__("cli", language)

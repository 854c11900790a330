"""Search for tools by the words of their names and descriptions. Pure and deterministic."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from internal.agent.domain.tools import ToolSpec

NAME_WEIGHT = 3
"""Weight of a word of the name relative to a word of the description."""

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PIECES = r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+"
_MIN_PLURAL_CHARS = 4


def search_words(text: str) -> set[str]:
    """Return the words of a text, of names as well; Chinese as pairs and single characters."""
    words: set[str] = set()
    for piece in {*re.findall(_PIECES, _CAMEL_CASE.sub(" ", text).lower())}:
        if "\u3400" <= piece[0] <= "\u9fff":
            words.update(piece, (piece[at : at + 2] for at in range(len(piece) - 1)))
        elif len(piece) >= _MIN_PLURAL_CHARS and not piece.endswith("ss"):
            words.add(piece.removesuffix("s"))
        else:
            words.add(piece)
    return words


def search_tools(tools: Sequence[ToolSpec], query: str) -> list[ToolSpec]:
    """Return the tools that have words of the query, the best first.

    Rare words count more. Of equal matches the shorter name comes first, then the earlier tool.
    """
    wanted = search_words(query)
    found = [
        (wanted & search_words(tool.name), wanted & search_words(tool.description))
        for tool in tools
    ]
    counts = Counter(word for name, text in found for word in name | text)
    weights = {word: math.log(1 + len(tools) / count) for word, count in counts.items()}

    def score(at: int) -> float:
        name, text = found[at]
        # sorted: the order of a sum of floats changes its last digit, and the order of sets varies
        return sum(
            weights[word] * (NAME_WEIGHT if word in name else 1) for word in sorted(name | text)
        )

    scores = [score(at) for at in range(len(tools))]
    ranked = sorted(range(len(tools)), key=lambda at: (-scores[at], len(tools[at].name)))
    return [tools[at] for at in ranked if scores[at]]

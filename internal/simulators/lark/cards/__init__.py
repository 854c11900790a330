"""Interactive cards: validation, CardKit operations and clicks.

Reading order: `card_json` (validation and lookup), `cardkit` (CardKit endpoints), `edits` (changes
to a card's JSON), `clicks` (callbacks).
"""

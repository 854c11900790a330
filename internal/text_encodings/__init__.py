"""Texts in the encodings of the world: which one bytes are in, and the way back. Does no I/O.

- `labels`: the labels of charsets, as the web uses them, and names for people
- `declarations`: the charset that a text names itself
- `guess`: the likeliest encoding of bytes that name none
- `detection`: the encoding of a text: its mark, its declaration, UTF-8, then a guess
- `conversion`: decoding, and encoding again without a change to anything else
- `stream`: decoding of output that arrives in chunks
"""

"""Check of the address and key of a model server that a person entered.

- `variants`: likely corrections of an address, and the addresses of providers. No I/O
- `model_list`: the models that a server lists, and doubts about unlisted ones. No I/O
- `sentences`: sentences for people about addresses that do not work. No I/O
- `prober`: sends the requests, without following redirects
- `check`: tries an address and a key in order, and reports the working ones
"""

"""Check of the address and key of a model server that a person entered.

- `variants`: the addresses that a person may have meant, and those of providers. No I/O
- `model_list`: the models that a server lists, and doubts of one that it does not list. No I/O
- `sentences`: what people read of an address that does not work. No I/O
- `prober`: sends the requests, without following redirects
- `check`: tries an address and a key in order, and reports what works
"""

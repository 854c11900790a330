"""Check of the address and key of a model server that a person entered.

- `entered_text`: takes off what is pasted around keys and addresses. Standard library only
- `variants`: the addresses that a person may have meant, and those of providers. No I/O
- `answers`: what an answer tells of an address. No I/O
- `model_list`: the models that a server lists, and doubts of one that it does not list. No I/O
- `sentences`: what people read of an address that does not work. No I/O
- `prober`: sends the requests, without following redirects
- `check`: tries an address and a key in order, and reports what works
"""

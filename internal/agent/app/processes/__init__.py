"""The processes that share a database.

In reading order:

- `lease_watch`: whether the owners of leases still live
- `leadership`: work that one process at a time does
- `process_list`: the gateways and workers, with what each does
"""

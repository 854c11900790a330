"""Login to servers over HTTP with OAuth 2.1.

Reading order: `token_file` (the encrypted logins in the home folder), `token_store` (their key and
content), `authorization` (requests to an authorization server, checked), `sign_in` (a login by a
person in a browser), `loopback` and `pending_logins` (receive the answer of the browser on this
machine and at the gateway) and `login_transport` (requests to a server with a token).
"""

"""Stand-ins for the world outside, each true to the protocol that it speaks."""

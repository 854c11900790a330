"""Everything of Larkspur but the command itself."""

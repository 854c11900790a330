"""Files worth keeping, stored by their content."""

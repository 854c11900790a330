"""Files and folders opened by descriptor, so that what was checked is what is used."""

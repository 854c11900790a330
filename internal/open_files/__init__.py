"""Files and folders opened by descriptor: the file that is used is the one that was checked."""

"""Evidence that strangers check: the format of packages, and the program that checks one without Remit (rule 18)."""

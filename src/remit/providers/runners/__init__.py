"""Tools that run elsewhere: on other servers of Remit, each with its own machines, isolation and limits."""

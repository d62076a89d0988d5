"""Where a value comes from: roles of arguments, and an index over every text that a model was given. Pure."""

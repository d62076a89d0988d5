"""Routes whose handler has a thought of its own, by noun; remit.api.table has every route."""

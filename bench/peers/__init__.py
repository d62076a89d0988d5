"""Programs that put peers under the same load, each in an environment of its own, which has no Remit in it."""

"""Programs that put peers under the same load, each run by bench/lab.py in .venv-bench, which has no Remit in it."""

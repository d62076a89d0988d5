"""The driver `wasm`: interpreters compiled to WebAssembly (WASI), which reach only what they are handed.

Except for its files, no kernel is asked on behalf of the program, so this is the strictest driver, and works on any
system; it runs only what was compiled to WASI, without processes, threads or packages in machine code.
"""

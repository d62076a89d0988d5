"""The driver `wasm`: interpreters compiled to WebAssembly (WASI), which reach nothing but what they are handed.

No kernel is asked on behalf of the program but for its files, so this is the strictest driver, and works on any system;
it runs only what was compiled to WASI, without processes, threads or packages in machine code.
"""

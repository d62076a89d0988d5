"""The filter on what sandboxed programs may ask of the kernel: classic BPF, built here, without a library."""

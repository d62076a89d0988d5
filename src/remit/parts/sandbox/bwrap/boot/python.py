"""Waits in a sandbox that was started ahead, and becomes the script that it is told to run: as if by `python SCRIPT`.

A program of its own, for the Python of the sandbox. Its module becomes the script's: nothing of ours stays in it.
"""

import sys
from types import CodeType, TracebackType


def _become(message: int, wake: int, waits: int) -> CodeType:
    """The script, once there is one; arguments, variables, path and module are as they would be without us."""
    import os  # noqa: PLC0415 - the module's own names are gone when the script runs
    import sys  # noqa: PLC0415 - the same

    ours = __file__

    def hidden(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show an error as the script's own: without the frames of this file."""
        while trace is not None and trace.tb_frame.f_code.co_filename == ours:
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)

    os.write(waits, b"x")
    os.close(waits)
    if not os.read(wake, 1):
        os._exit(0)  # it is not needed any more
    data = b""
    while part := os.pread(message, 65_536, len(data)):
        data += part
    os.close(wake)
    os.close(message)
    count, *words = data.split(b"\0")
    for word in words[int(count) :]:
        name, _, value = word.partition(b"=")
        os.environb[name] = value
    argv = [os.fsdecode(word) for word in words[: int(count)]]
    path = os.path.abspath(argv[1])
    sys.argv[:] = argv[1:]
    sys.orig_argv[:] = argv
    sys.path[0] = os.path.dirname(path)
    sys.excepthook = hidden
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        sys.exit(2)
    code = compile(source, path, "exec", dont_inherit=True)
    space = globals()
    for ours_too in [variable for variable in space if not variable.startswith("__")]:
        del space[ours_too]
    space.update(__file__=path, __doc__=None)
    return code


if __name__ == "__main__":
    exec(_become(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))  # noqa: S102 - the sandboxed script itself

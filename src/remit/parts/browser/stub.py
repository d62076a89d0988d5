"""The program that Playwright starts in the browser's place: it hands the pipes of the browser to Remit, and waits.

It is run by path, without any package. Playwright talks to a browser over descriptors 3 and 4; they go over a socket to
Remit, with the browser's arguments, and Remit gives them to the browser in the sandbox.
"""

import json
import os
import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as remit:
        os.chdir(os.environ["REMIT_BROWSER"])  # the path of a socket may not be as long as a folder's
        remit.connect("socket")
        socket.send_fds(remit, [json.dumps(sys.argv[1:]).encode()], [3, 4])
        os.close(3)
        os.close(4)
        remit.recv(1)  # until the browser has ended, or Remit

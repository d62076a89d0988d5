# What CPython and MicroPython both run: no annotations that are looked up, no imports, no f-string tricks.
"""Attempts on files, each by its title; `{name}` in a path is a fact."""

READ = "read"
LIST = "list"
WRITE = "write"
MAKE = "make a folder"
MOVE = "move a file of ours there"
FOLLOW = "read through a link that was there before"

ATTEMPTS = {
    "read a secret file of the machine": (READ, "{secret}"),
    "read it by a path that goes up": (READ, "../../../../../../../..{secret}"),
    "read it by a path that goes up below a folder of ours": (READ, "/workspace/../..{secret}"),
    "read it through the root of /proc/self": (READ, "/proc/self/root{secret}"),
    "read it through a link in the workspace": (FOLLOW, "link-to-secret"),
    "read it through a linked folder in the workspace": (FOLLOW, "link-to-root{secret}"),
    "read another conversation's workspace": (READ, "{other}/private"),
    "list another conversation's workspace": (LIST, "{other}"),
    "list the folder above the workspace": (LIST, "{above}"),
    "list what the runtime keeps beside the workspace": (LIST, "{above}/state"),
    "read /etc/shadow": (READ, "/etc/shadow"),
    "read /etc/machine-id": (READ, "/etc/machine-id"),
    "read /etc/resolv.conf": (READ, "/etc/resolv.conf"),
    "list root's home": (LIST, "/root"),
    "list the homes of users": (LIST, "/home"),
    "list /var/lib": (LIST, "/var/lib"),
    "list /run": (LIST, "/run"),
    "list /sys": (LIST, "/sys"),
    "list /boot": (LIST, "/boot"),
    "list /tmp of the machine": (LIST, "{secret_folder}"),
    "make a folder in /": (MAKE, "/remit-probe-made"),
    "make a folder in /usr": (MAKE, "/usr/remit-probe-made"),
    "make a folder in /etc": (MAKE, "/etc/remit-probe-made"),
    "make a folder in the inputs": (MAKE, "/inputs/remit-probe-made"),
    "make a folder in another conversation's workspace": (MAKE, "{other}/remit-probe-made"),
    "write beside the secret file": (WRITE, "{secret_folder}/remit-probe-made"),
    "write to a file of the inputs": (WRITE, "/inputs/remit-probe-made"),
    "move a file out of the workspace": (MOVE, "{secret_folder}/remit-probe-moved"),
    "move a file out by a path that goes up": (MOVE, "../remit-probe-moved"),
}


def attempt(title, facts, os):  # type: ignore[no-untyped-def]
    """What it got; "" or an OSError if it was held. What it makes it also deletes."""
    how, path = ATTEMPTS[title]
    for name in facts:
        path = path.replace("{" + name + "}", facts[name])
    if how in {READ, FOLLOW}:
        with open(path) as file:
            said = file.read(20)  # an empty file tells nothing
        return said and "read " + path + ": " + said
    if how == LIST:
        return "listed " + path + ": " + " ".join(os.listdir(path)[:3])
    if how == MAKE:
        os.mkdir(path)
        ours = path.split("/")[-1] in os.listdir(".")  # `/` may be the workspace
        os.rmdir(path)
        return "" if ours else "made " + path
    if how == WRITE:
        with open(path, "w"):
            pass
        os.remove(path)
        return "wrote " + path
    with open("remit-probe-ours", "w"):
        pass
    os.rename("remit-probe-ours", path)
    os.remove(path)
    return "moved to " + path

"""Objects of a bucket as the files below a folder, for servers of tests.

An object is there when all of its bytes are. What servers of several kinds have
in common is here: files, parts of them, and bodies that fail as a fault says.
"""

import os
import re
import shutil
import time

NEW = ".s3-new"  # behind the name of what is being written


def version(path, about):
    """What no other version of a file has."""
    return path, about.st_mtime_ns, about.st_size, about.st_ino


def keys(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(NEW):
                continue
            path = os.path.join(parent, name)
            yield os.path.relpath(path, folder), path


def listed(folder, prefix, delimiter, behind, most):
    """A page of a list: names with paths, "" of a common prefix; if there is more."""
    found = {}
    for key, path in keys(folder):
        if not key.startswith(prefix):
            continue
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            found[prefix + rest[: rest.index(delimiter) + 1]] = ""
        else:
            found[key] = path
    names = [name for name in sorted(found, key=os.fsencode) if name > behind]
    return [(name, found[name]) for name in names[:most]], len(names) > most


def put(path, body):
    """Makes an object of the bytes; of a name with '/' behind it a folder."""
    if path.endswith("/"):
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + NEW, "wb") as file:
        file.write(body)
    os.replace(path + NEW, path)


def remove(path):
    if path.endswith("/"):
        # An object that stands for a folder, which may have others.
        try:
            os.rmdir(path)
        except OSError:
            pass
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def replace(path, size):
    with open(path + ".new", "wb") as file:
        file.write(os.urandom(size))
    os.replace(path + ".new", path)


def part(header, size):
    """First byte, number of bytes, whether a Range asks for a part."""
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", header)
    if not match:
        return 0, size, False
    begin = int(match[1])
    end = min(int(match[2]) if match[2] else size - 1, size - 1)
    return (begin, end - begin + 1, True) if begin < size else (None, 0, True)


def send_body(handler, body, fault):
    if fault["do"] == "cut":
        handler.wfile.write(body[: len(body) // 2])
        handler.close_connection = True
    elif fault["do"] == "slow":
        for at in range(0, len(body), 1 << 16):
            handler.wfile.write(body[at : at + (1 << 16)])
            time.sleep(fault["seconds"])
    else:
        handler.wfile.write(body)


def harm(path, size, fault):
    """What becomes of an object that has been read."""
    if fault["do"] == "replace":
        replace(path, size)
    if fault["do"] == "remove":
        os.remove(path)

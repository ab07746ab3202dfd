"""Takes a folder's files back to what processes have made durable.

As a loss of power may do at its worst: bytes and names that were not synced are
gone. Goes by the notes of synced_files.cc.
"""

import os
import shutil


def cut(folder, notes):
    """Returns the number of bytes, and of files and folders, that went."""
    sizes, entries = read(notes)
    removed = []
    lost = give_back_names(folder, entries, removed)
    with open(notes, "a") as out:
        out.writelines(f"U {inode} by the cut\n" for inode in removed)
    gone = 0
    for path, _, files in os.walk(folder):
        for name in files:
            full = os.path.join(path, name)
            status = os.lstat(full)
            size = sizes.get(status.st_ino, 0)
            if size < status.st_size:
                gone += status.st_size - size
                os.truncate(full, size)
    return gone, lost


def read(notes):
    """Returns the sizes of files and the entries of folders, by their inodes."""
    sizes, entries = {}, {}
    before, listed = {}, {}
    with open(notes) as file:
        for line in [*file, "end 0 of the notes"]:
            kind, number, rest = line.rstrip("\n").split(" ", 2)
            if kind == "E":
                listed[rest] = int(number)
                continue
            keep(before, listed)
            before, listed = {}, {}
            if kind == "F":
                sizes[int(number)] = int(rest.split(" ", 1)[0])
            elif kind == "D":
                before = entries.get(int(number), {})
                listed = entries[int(number)] = {}
            elif kind == "U":
                forget(int(number), sizes, entries)
    return sizes, entries


def keep(before, listed):
    """Adds names that were durable and have not gone to a later list of names.

    Of two processes that sync a folder at a time the one that has listed it first
    may write its note last.
    """
    there = set(listed.values())
    for name, number in before.items():
        if number not in there:
            listed.setdefault(name, number)


def forget(inode, sizes, entries):
    """Forgets what is gone: the next file with its inode is another one."""
    sizes.pop(inode, None)
    entries.pop(inode, None)
    for names in entries.values():
        for name in [name for name, number in names.items() if number == inode]:
            del names[name]


def inodes(path):
    """Returns the inodes of a file, or of a folder and all that is in it."""
    found = [os.lstat(path).st_ino]
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            found += inodes(os.path.join(path, name))
    return found


def give_back_names(folder, entries, removed):
    """Removes names that are not durable; undoes renames that are not.

    Returns how many files and folders went, and adds their inodes to `removed`.
    """
    durable = entries.get(os.lstat(folder).st_ino, {})
    lost = 0
    for name in sorted(os.listdir(folder)):
        full = os.path.join(folder, name)
        inode = os.lstat(full).st_ino
        if durable.get(name) != inode:
            before = [old for old, number in durable.items()
                      if number == inode and
                      not os.path.lexists(os.path.join(folder, old))]
            if not before:
                lost += 1
                removed += inodes(full)
                if os.path.isdir(full):
                    shutil.rmtree(full)
                else:
                    os.remove(full)
                continue
            os.rename(full, os.path.join(folder, before[0]))
            full = os.path.join(folder, before[0])
        if os.path.isdir(full):
            lost += give_back_names(full, entries, removed)
    return lost

#!/usr/bin/env python3
"""Files of processes under synced_files.cc, before and behind a cut."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import power_cut  # noqa: E402

LIBRARY = os.path.abspath(sys.argv.pop(1))
NAMES = """
import os, shutil, sys
os.chdir(sys.argv[1])
def write(path, text, is_synced):
    with open(path, "w") as out:
        out.write(text)
        out.flush()
        if is_synced: os.fsync(out.fileno())
def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
"""


class PowerCutTest(unittest.TestCase):
    def setUp(self):
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        self.folder = os.path.join(root.name, "files")
        self.notes = os.path.join(root.name, "notes")
        os.mkdir(self.folder)

    def do(self, text):
        subprocess.run(
            [sys.executable, "-c", NAMES + text, self.folder], check=True,
            env=dict(os.environ, LD_PRELOAD=LIBRARY,
                     PARASOL_SYNCED_FILES=self.notes))

    def cut(self):
        return power_cut.cut(self.folder, self.notes)

    def size(self, name):
        return os.path.getsize(os.path.join(self.folder, name))

    def test_what_was_synced_stays(self):
        self.do("write('a', 'kept', True); sync('.')\n"
                "open('a', 'a').write(' and more')")
        self.assertEqual(self.cut(), (9, 0))
        self.assertEqual(self.size("a"), 4)

    def test_names_that_were_not_synced_go(self):
        self.do("sync('.'); write('a', 'text', True)")
        self.assertEqual(self.cut(), (0, 1))
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_is_gone_says_nothing_of_others(self):
        """Their inodes are taken again, on many file systems."""
        for remove in ("os.unlink('a')", "os.rename(other, 'a')",
                       "os.unlink('a', dir_fd=os.open('.', os.O_RDONLY))"):
            with self.subTest(remove):
                self.do("write('a', 'first', True); sync('.')\n"
                        "write('../other', 'other', True)\n"
                        "number = os.stat('a').st_ino\n"
                        "other = '../other'\n" + remove +
                        "\nprint(number, file=open('../number', 'w'))")
                with open(os.path.join(self.folder, "../number")) as file:
                    number = int(file.read())
                sizes, entries = power_cut.read(self.notes)
                self.assertNotIn(number, sizes)
                self.assertNotIn(
                    number, [each for names in entries.values()
                             for each in names.values()])

    def test_an_older_list_that_is_noted_later_takes_nothing_back(self):
        self.do("write('a', 'kept', True); sync('.')")
        with open(self.notes, "a") as notes:
            notes.write(f"D {os.stat(self.folder).st_ino} {self.folder}\n")
        self.assertEqual(self.cut(), (0, 0))
        self.assertEqual(self.size("a"), 4)

    def test_a_name_that_was_given_up_is_gone(self):
        self.do("write('a', 'kept', True); sync('.')\n"
                "os.rename('a', 'b'); sync('.')")
        self.assertEqual(self.cut(), (0, 0))
        self.assertEqual(os.listdir(self.folder), ["b"])

    def test_another_name_keeps_what_is_there(self):
        self.do("write('a', 'kept', True); os.link('a', 'b'); sync('.')\n"
                "os.unlink('a'); sync('.')")
        self.assertEqual(self.cut(), (0, 0))
        self.assertEqual(self.size("b"), 4)

    def test_folders_are_forgotten_with_their_names(self):
        self.do("os.mkdir('d'); write('d/a', 'text', True); sync('d'); sync('.')\n"
                "print(os.stat('d').st_ino, file=open('../number', 'w'))\n"
                "shutil.rmtree('d')")
        with open(os.path.join(self.folder, "../number")) as file:
            self.assertNotIn(int(file.read()), power_cut.read(self.notes)[1])

    def test_what_the_cut_removes_is_forgotten(self):
        self.do("sync('.'); os.mkdir('d'); write('d/a', 'text', True); sync('d')")
        self.assertEqual(self.cut(), (0, 1))
        sizes, entries = power_cut.read(self.notes)
        self.assertEqual(sizes, {})
        self.assertEqual(list(entries.values()), [{}])


if __name__ == "__main__":
    unittest.main()

"""A small web server for tests: files below a folder, and many ways to fail.

  web_server.py ROOT [NAME]

serves ROOT/files/path as http://127.0.0.1:PORT/path, GET with ranges, on a free
port, which it prints as a line. With a NAME ("IP:127.0.0.1") it speaks TLS, with
a certificate of that name by an authority whose own is ROOT/authority.pem.
What is asked of it, and how it fails, is in files of ROOT (faults.py).
What a fault may "do":

  "404", "503", …  this status, with "retry_after", if that is set
  "redirect"     a redirect `to` another URL
  "whole"        the whole file, whatever part was asked for
  "unsized"      so, and nothing says how large it is
  "cut"          half of the body, and the connection ends
  "reset"        half of the body, and the connection is reset
  "short"        a byte less than what was asked for, as Content-Length says
  "long"         a byte more than what was asked for, as Content-Length says
  "chunks"       the body in chunks, with `more` bytes behind it (-1: one less)
  "total"        a Content-Range of a file of `bytes` bytes
  "shifted"      a Content-Range that begins a byte later
  "nowhere"      206 without a Content-Range
  "huge"         a Content-Length of `bytes`
  "hang"         no answer for `seconds`, and then the connection ends
  "slow"         the body in pieces of `bytes`, with `seconds` between them
  "head"         a line of the head after the other, for ever, `seconds` apart
  "garbage"      bytes that are no answer
  "etag"         another ETag than the file has; "etag": this one
  "unversioned"  neither an ETag nor a time of change
  "dated"        no ETag
  "replace"      the answer is as it should be, and by then the file has other bytes
  "packed"       the answer says that it is packed, which nobody asked for
"""

import email.utils
import http.server
import os
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

# Beside this file as it was named, not as links lead.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from faults import FailingHandler  # noqa: E402


class Handler(FailingHandler):
    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        line = f"{self.command} {path}"
        if self.meet(line, url.query):
            return
        what = self.fault["do"]
        if what == "garbage":
            self.wfile.write(random.Random(path).randbytes(3000))
            self.close_connection = True
        elif what == "head":
            self.head_for_ever()
        elif what.isdigit():
            self.refuse(int(what))
        elif what == "redirect":
            self.send_response(302)
            self.send_header("Location", self.fault["to"])
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"moved")
        else:
            self.file(os.path.join(ROOT, "files", path.lstrip("/")), what)

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "3")
        if "retry_after" in self.fault:
            self.send_header("Retry-After", str(self.fault["retry_after"]))
        self.end_headers()
        self.wfile.write(b"no\n")

    def head_for_ever(self):
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"X-More: " + b"x" * 100 + b"\r\n")
            time.sleep(self.fault["seconds"])

    def file(self, path, what):
        try:
            with open(path, "rb") as file:
                about = os.fstat(file.fileno())
                tag = f'"{about.st_mtime_ns:x}-{about.st_size:x}-{about.st_ino:x}"'
                begin, size, is_part = self.range(about.st_size, tag, what)
                if begin is None:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{about.st_size}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                file.seek(begin)
                # What is read in one go is of one version of the file.
                body = file.read(size)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            self.refuse(404)
            return
        if what == "short":
            body = body[:-1]
        if what == "long":
            body += b"x"
        self.send_response(206 if is_part else 200)
        if is_part and what != "nowhere":
            first = begin + (what == "shifted")
            total = self.fault["bytes"] if what == "total" else about.st_size
            self.send_header("Content-Range", f"bytes {first}-{first + size - 1}/{total}")
        if what != "unversioned":
            if what != "dated":
                self.send_header("ETag", self.fault.get("etag", '"other"') if what == "etag" else tag)
            self.send_header(
                "Last-Modified", email.utils.formatdate(about.st_mtime, usegmt=True)
            )
        if what == "packed":
            self.send_header("Content-Encoding", "gzip")
        if what in ("chunks", "unsized"):
            self.send_header("Transfer-Encoding", "chunked")
        else:
            length = self.fault["bytes"] if what == "huge" else len(body)
            self.send_header("Content-Length", str(length))
        if what == "replace":
            replace(path, about.st_size)
        self.end_headers()
        self.body(body, what)

    def body(self, body, what):
        if what in ("cut", "huge"):
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif what == "reset":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            # Closed with what is unsent thrown away.
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        elif what in ("chunks", "unsized"):
            more = self.fault.get("more", 0)
            body = body + b"x" * more if more >= 0 else body[:more]
            for at in range(0, len(body), 1000):
                chunk = body[at : at + 1000]
                self.wfile.write(b"%x\r\n" % len(chunk) + chunk + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        elif what == "slow":
            step = self.fault["bytes"]
            for at in range(0, len(body), step):
                self.wfile.write(body[at : at + step])
                self.wfile.flush()
                time.sleep(self.fault["seconds"])
        else:
            self.wfile.write(body)

    def range(self, size, tag, what):
        """First byte, number of bytes, whether it is a part."""
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not match or what in ("whole", "unsized"):
            return 0, size, False
        if self.headers.get("If-Range", tag) != tag:
            return 0, size, False
        begin = int(match[1])
        end = min(int(match[2]) if match[2] else size - 1, size - 1)
        return (begin, end - begin + 1, True) if begin < size else (None, 0, True)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, tls):
        super().__init__(("127.0.0.1", 0), Handler)
        self.tls = tls

    def finish_request(self, request, client_address):
        # On the thread of the connection: a handshake may hang.
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def shutdown_request(self, request):
        # Without the orderly end of a connection that is to be reset.
        self.close_request(request)

    def handle_error(self, request, client_address):
        pass  # clients go away


def replace(path, size):
    with REPLACING:
        with open(path + ".new", "wb") as file:
            file.write(os.urandom(size))
        # A file system may have one time, and one number, for two files in a row.
        REPLACED[0] = max(REPLACED[0] + 1_000_000, time.time_ns())
        os.utime(path + ".new", ns=(REPLACED[0], REPLACED[0]))
        os.replace(path + ".new", path)


def tls_of(name):
    def path(file):
        return os.path.join(ROOT, file)

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=ROOT)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem",
            "-days", "30", "-subj", "/CN=authority of a test")
    openssl("req", "-new", *key, "-keyout", "server.key", "-out", "server.request",
            "-subj", "/CN=server of a test")
    with open(path("names"), "w", encoding="utf-8") as file:
        file.write(f"subjectAltName={name}\n")
    openssl("x509", "-req", "-in", "server.request", "-CA", "authority.pem",
            "-CAkey", "authority.key", "-CAcreateserial", "-days", "30",
            "-extfile", "names", "-out", "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path("server.pem"), path("server.key"))
    return context


ROOT = os.path.abspath(sys.argv[1])
Handler.serve_from(ROOT)
REPLACING = threading.Lock()
REPLACED = [0]  # the newest file's time

server = Server(tls_of(sys.argv[2]) if len(sys.argv) > 2 else None)
print(server.server_address[1], flush=True)
server.serve_forever()

"""A small S3 server for tests: objects are the files below a folder.

  s3_server.py ROOT

serves ROOT/bucket/key as s3://bucket/key on a free port of 127.0.0.1, which it
prints as a line: GET with ranges, HEAD, ListObjectsV2, PUT, uploads in parts and
DELETE. A request needs an Authorization header, which is not looked into. An
object is there when all of its bytes are. What is asked of it, and how it fails,
is in files of ROOT (web/testing/faults.py).
What a fault may "do":

  "403", "404", "500", "503"   this status, with the error code that S3 has
  "cut"      half of the body, and the connection ends
  "short"    a body that is a byte shorter than what was asked for
  "slow"     the body in pieces, with `seconds` between them
  "hang"     no answer for `seconds`, and then the connection ends
  "etag"     another ETag than the object has
  "replace"  the answer is as it should be, and by then the object has other bytes
  "remove"   the answer is as it should be, and by then the object is gone
  "lost"     what was asked for is done, and the connection ends without an answer
  "late"     the connection ends, and what was asked for is done behind the next
             request for the same
"""

import email.utils
import hashlib
import http.server
import os
import re
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils

# Beside this file as it was named, not as links lead.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.normpath(os.path.join(HERE, "../../web/testing"))]

from bucket import harm, listed, part, put, remove, send_body, version  # noqa: E402
from faults import FailingHandler  # noqa: E402

PAGE = 1000  # keys of a list at a time
CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    500: "InternalError",
    503: "SlowDown",
}


class Handler(FailingHandler):
    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        line = f"{self.command} {path}"
        self.body_sent = self.read_body()
        if self.meet(line, url.query):
            return
        what = self.fault["do"]
        if what.isdigit():
            self.refuse(int(what), path)
            return
        if "Authorization" not in self.headers:
            self.refuse(403, path)
            return
        if what == "late":
            self.close_connection = True
            LATE[line] = self, path, urllib.parse.parse_qs(url.query, keep_blank_values=True)
            return
        bucket, _, key = path.lstrip("/").partition("/")
        if not os.path.isdir(os.path.join(ROOT, bucket)) or not bucket:
            self.refuse(404, path, "NoSuchBucket")
        elif self.command in ("PUT", "POST", "DELETE"):
            answer = self.change(path, urllib.parse.parse_qs(url.query, keep_blank_values=True))
            if late := LATE.pop(line, None):
                Handler.change(*late)
            if what == "lost":
                self.close_connection = True
            else:
                self.answer_change(path, *answer)
        elif key:
            self.object(os.path.join(ROOT, bucket, key), path)
        else:
            self.list(bucket, dict(urllib.parse.parse_qsl(url.query)))

    def refuse(self, status, path, code=None):
        code = code or CODES.get(status, "InternalError")
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><Error>'
            f"<Code>{code}</Code><Message>{code} as the test wants it</Message>"
            f"<Resource>{xml.sax.saxutils.escape(path)}</Resource></Error>"
        ).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def read_body(self):
        """The bytes of a request, without the frames of aws-chunked."""
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            raw = b"".join(chunks)
            while self.rfile.readline().strip():
                pass
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return raw
        pieces, at = [], 0
        while True:
            end = raw.index(b"\r\n", at)
            size = int(raw[at:end].split(b";")[0], 16)
            if size == 0:
                return b"".join(pieces)
            pieces.append(raw[end + 2 : end + 2 + size])
            at = end + 2 + size + 2

    def change(self, path, query):
        """Does what PUT, POST or DELETE asks for; status, body and ETag."""
        with CHANGES_LOCK:
            return self.change_alone(path, query)

    def change_alone(self, path, query):
        bucket, _, key = path.lstrip("/").partition("/")
        file_path = os.path.join(ROOT, bucket, key)
        upload = query.get("uploadId", [""])[0]
        if self.command == "DELETE":
            if upload:
                UPLOADS.pop(upload, None)
            else:
                remove(file_path)
            return 204, b"", ""
        if self.command == "PUT" and upload:
            if upload not in UPLOADS:
                return 404, b"NoSuchUpload", ""
            UPLOADS[upload][int(query["partNumber"][0])] = self.body_sent
            return 200, b"", '"' + hashlib.md5(self.body_sent).hexdigest() + '"'
        if self.command == "PUT":
            put(file_path, self.body_sent)
            return 200, b"", etag(file_path, os.stat(file_path)) if key[-1:] != "/" else ""
        if "delete" in query:
            for name in re.findall(r"<Key>(.*?)</Key>", self.body_sent.decode()):
                remove(os.path.join(ROOT, bucket, xml.sax.saxutils.unescape(name)))
            return 200, b"<DeleteResult></DeleteResult>", ""
        if "uploads" in query:
            name = f"upload-{len(UPLOADS)}-{time.time_ns()}"
            UPLOADS[name] = {}
            return (
                200,
                f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                "</InitiateMultipartUploadResult>".encode(),
                "",
            )
        parts = UPLOADS.pop(upload, None)
        if parts is None:
            return 404, b"NoSuchUpload", ""
        put(file_path, b"".join(parts[number] for number in sorted(parts)))
        tag = etag(file_path, os.stat(file_path))
        return (
            200,
            f"<CompleteMultipartUploadResult><ETag>{shown(tag)}</ETag>"
            "</CompleteMultipartUploadResult>".encode(),
            "",
        )

    def answer_change(self, path, status, body, tag):
        if status == 404:
            self.refuse(404, path, body.decode())
            return
        if body:
            body = b'<?xml version="1.0" encoding="UTF-8"?>' + body
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        if body:
            self.send_header("Content-Type", "application/xml")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def object(self, file_path, path):
        try:
            with open(file_path, "rb") as file:
                about = os.fstat(file.fileno())
                tag = self.tag(file_path, about)
                begin, size, is_part = part(self.headers.get("Range", ""), about.st_size)
                if begin is None:
                    self.refuse(416, path, "InvalidRange")
                    return
                file.seek(begin)
                # What is read in one go is of one version of the object.
                body = file.read(size) if self.command == "GET" else b""
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            self.refuse(404, path)
            return
        what = self.fault["do"]
        if what == "short":
            body, size = body[:-1], size - 1
        self.send_response(206 if is_part else 200)
        if is_part:
            self.send_header(
                "Content-Range", f"bytes {begin}-{begin + size - 1}/{about.st_size}"
            )
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "binary/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", tag)
        self.send_header(
            "Last-Modified", email.utils.formatdate(about.st_mtime, usegmt=True)
        )
        harm(file_path, about.st_size, self.fault)
        self.end_headers()
        send_body(self, body, self.fault)

    def tag(self, file_path, about):
        if self.fault["do"] == "etag":
            return '"' + hashlib.md5(os.urandom(8)).hexdigest() + '"'
        return etag(file_path, about)

    def list(self, bucket, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most = min(PAGE, int(query.get("max-keys", PAGE)))
        behind = query.get("continuation-token", "")
        page, is_cut = listed(
            os.path.join(ROOT, bucket), prefix, delimiter, behind, most
        )
        text = "".join(self.entry(name, path) for name, path in page)
        more = ""
        if is_cut:
            more = f"<NextContinuationToken>{shown(page[-1][0])}</NextContinuationToken>"
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{shown(prefix)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{'true' if is_cut else 'false'}</IsTruncated>"
            f"{more}{text}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def entry(self, name, path):
        if not path:
            return f"<CommonPrefixes><Prefix>{shown(name)}</Prefix></CommonPrefixes>"
        about = os.stat(path)
        changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(about.st_mtime))
        return (
            f"<Contents><Key>{shown(name)}</Key><LastModified>{changed}</LastModified>"
            f"<ETag>{shown(etag(path, about))}</ETag><Size>{about.st_size}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )


TAGS = {}


def etag(path, about):
    known = version(path, about)
    if known not in TAGS:
        digest = hashlib.md5()
        with open(path, "rb") as file:
            if version(path, os.fstat(file.fileno())) == known:
                while piece := file.read(1 << 20):
                    digest.update(piece)
            else:
                # It has been replaced: its bytes are another version's.
                digest.update(repr(known).encode())
        TAGS.setdefault(known, f'"{digest.hexdigest()}"')
    return TAGS[known]


def shown(text):
    return xml.sax.saxutils.escape(text)


ROOT = sys.argv[1]
Handler.serve_from(ROOT)
CHANGES_LOCK = threading.Lock()
LATE = {}  # what is yet to be done, by the lines of requests
UPLOADS = {}  # parts of each upload that is not complete, by their numbers

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()

"""A small server of Google's store for tests: objects are the files below a folder.

  gcs_server.py ROOT

serves ROOT/bucket/key as gs://bucket/key by the JSON API, on a free port of
127.0.0.1, which it prints as a line: objects.get with ranges and generations,
objects.list, objects.delete, buckets.get, and uploads that are resumed. But for
the bucket "public" a request needs a token, which POST /token gives to anybody. An
object is there when all of its bytes are. What is asked of it, and how it fails,
is in files of ROOT (web/testing/faults.py), in the words of the S3 server, so that
both have the same tests: a request is

  "HEAD /bucket/key"    for what the store knows of an object
  "GET /bucket/key"     for its bytes
  "POST /bucket/key"    to begin an upload
  "PUT /bucket/key"     with bytes of an upload, or for how many there are
  "DELETE /bucket/key"
  "GET /bucket"         for a list
  "POST /token"

What a fault may "do":

  "400", "401", "403", "404", "412", "429", "500", "503"   this status
  "cut"      half of the body, and the connection ends
  "short"    a body that is a byte shorter than what was asked for
  "slow"     the body in pieces, with `seconds` between them
  "hang"     no answer for `seconds`, and then the connection ends
  "etag"     another generation than the object has
  "touched"  other facts than before of the same generation
  "replace"  the answer is as it should be, and by then the object has other bytes
  "remove"   the answer is as it should be, and by then the object is gone
  "lost"     what was asked for is done, and the connection ends without an answer
  "late"     the connection ends, and what was asked for is done behind the next
             request for the same
  "forget"   the upload is not there any more
  "half"     of the bytes of an upload the first half is kept
"""

import http.server
import json
import os
import random
import re
import sys
import threading
import time
import urllib.parse

# Beside this file as it was named, not as links lead.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.normpath(os.path.join(HERE, "../../web/testing"))]

from bucket import harm, listed, part, put, remove, send_body  # noqa: E402
from faults import FailingHandler  # noqa: E402

PAGE = 1000  # objects of a list at a time
QUANTUM = 256 << 10  # bytes of an upload that are kept together
TOKEN = "token-of-the-test"


class Handler(FailingHandler):
    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.body_sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket, key, method = self.what(url.path, query)
        line = f"{method} /{bucket}" + (f"/{key}" if key else "")
        if self.meet(line, url.query):
            return
        what = self.fault["do"]
        if what.isdigit():
            self.refuse(int(what), "as the test wants it")
        elif line == "POST /token":
            self.json(200, {"access_token": TOKEN, "expires_in": 3600,
                            "token_type": "Bearer"})
        elif bucket != "public" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.refuse(401, "Anonymous caller does not have storage.objects access")
        elif not bucket or not os.path.isdir(os.path.join(ROOT, bucket)):
            self.refuse(404, "The specified bucket does not exist.")
        elif method in ("POST", "PUT", "DELETE"):
            self.change_as_told(method, bucket, key, query)
        elif key:
            self.object(os.path.join(ROOT, bucket, key), bucket, key, query)
        elif method == "GET":
            self.list(bucket, query)
        else:
            self.json(200, {"kind": "storage#bucket", "name": bucket})

    def what(self, path, query):
        """Bucket, key and method of a request."""
        if path == "/token":
            return "token", "", self.command
        if upload := UPLOADS.get(query.get("upload_id", "")):
            return upload["bucket"], upload["key"], self.command
        match = re.fullmatch(r"(/upload)?/storage/v1/b/([^/]*)(/o)?(?:/([^/]*))?", path)
        if not match:
            return "", "", self.command
        bucket = urllib.parse.unquote(match[2])
        key = urllib.parse.unquote(match[4] or "") or query.get("name", "")
        method = self.command
        if method == "GET" and (key and query.get("alt") != "media" or not match[3]):
            method = "HEAD"
        return bucket, key, method

    def refuse(self, status, why):
        self.json(status, {"error": {"code": status, "message": why,
                                     "errors": [{"message": why, "domain": "global"}]}})

    def json(self, status, value, headers=()):
        body = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        for name, text in headers:
            self.send_header(name, text)
        if body:
            self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def change_as_told(self, *request):
        if self.fault["do"] == "late":
            self.close_connection = True
            LATE[request[:3]] = self, *request
            return
        answer = self.change(*request)
        if late := LATE.pop(request[:3], None):
            Handler.change(*late)
        if self.fault["do"] == "lost":
            self.close_connection = True
        elif isinstance(answer[1], str):
            self.refuse(*answer)
        else:
            self.json(*answer)

    def change(self, method, bucket, key, query):
        """Does what is asked for; status, body or error, heads."""
        with CHANGES_LOCK:
            path = os.path.join(ROOT, bucket, key)
            if method == "DELETE":
                return delete(path, query)
            if method == "PUT":
                return self.upload(query)
            name = f"upload-{len(UPLOADS)}-{time.time_ns()}"
            UPLOADS[name] = {"bucket": bucket, "key": key, "bytes": bytearray(), "made": None}
            place = f"http://{self.headers['Host']}/upload/storage/v1/b/{bucket}/o"
            return 200, None, [("Location", f"{place}?uploadType=resumable&upload_id={name}")]

    def upload(self, query):
        if self.fault["do"] == "forget":
            UPLOADS.pop(query.get("upload_id", ""), None)
        upload = UPLOADS.get(query.get("upload_id", ""))
        if upload is None:
            return 410, "The upload is not there any more."
        if upload["made"]:
            return 200, upload["made"]
        # "bytes 0-9/10", "bytes 0-9/*", and of no bytes "bytes */10", "bytes */*".
        match = re.fullmatch(
            r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", self.headers.get("Content-Range", "")
        )
        if not match:
            return 400, "The request has no Content-Range."
        have = len(upload["bytes"])
        if match[1]:
            begin = int(match[1])
            if begin > have:
                return 503, f"The bytes before {begin} are missing."
            sent = self.body_sent
            if self.fault["do"] == "half":
                sent = sent[: len(sent) // 2 // QUANTUM * QUANTUM]
            upload["bytes"] += sent[have - begin :]
            have = len(upload["bytes"])
        if match[2] != "*" and int(match[2]) == have:
            path = os.path.join(ROOT, upload["bucket"], upload["key"])
            put(path, upload["bytes"])
            upload["made"] = facts(upload["bucket"], upload["key"], path)
            upload["bytes"] = bytearray()
            return 200, upload["made"]
        return 308, None, [("Range", f"bytes=0-{have - 1}")] if have else []

    def object(self, path, bucket, key, query):
        try:
            with open(path, "rb") as file:
                about = os.fstat(file.fileno())
                made = facts(bucket, key, path, about)
                begin, size, is_part = part(self.headers.get("Range", ""), about.st_size)
                file.seek(begin or 0)
                # What is read in one go is of one version of the object.
                body = file.read(size) if query.get("alt") == "media" else b""
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            self.refuse(404, f"No such object: {bucket}/{key}")
            return
        if self.fault["do"] == "etag":
            made["generation"] = str(random.getrandbits(60))
        if self.fault["do"] == "touched":
            made["etag"] = made["updated"] = f"{random.getrandbits(60)}"
            made["updated"] = rfc3339(random.randrange(1 << 30))
        if query.get("generation", made["generation"]) != made["generation"]:
            self.refuse(404, f"No such object: {bucket}/{key}")
            return
        if query.get("alt") != "media":
            self.json(200, made)
            return
        if begin is None:
            self.refuse(416, "The requested range cannot be satisfied.")
            return
        if self.fault["do"] == "short":
            body, size = body[:-1], size - 1
        self.send_response(206 if is_part else 200)
        if is_part:
            self.send_header(
                "Content-Range", f"bytes {begin}-{begin + size - 1}/{about.st_size}"
            )
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header("x-goog-generation", made["generation"])
        harm(path, about.st_size, self.fault)
        self.end_headers()
        send_body(self, body, self.fault)

    def list(self, bucket, query):
        delimiter = query.get("delimiter", "")
        page, is_cut = listed(
            os.path.join(ROOT, bucket), query.get("prefix", ""), delimiter,
            query.get("pageToken", ""), min(PAGE, int(query.get("maxResults", PAGE))),
        )
        answer = {"kind": "storage#objects"}
        if is_cut:
            answer["nextPageToken"] = page[-1][0]
        answer["items"] = [facts(bucket, name, path) for name, path in page if path]
        answer["prefixes"] = [name for name, path in page if not path]
        self.json(200, answer)


def delete(path, query):
    try:
        made = facts("", "", path)
    except FileNotFoundError:
        return 404, "No such object"
    if query.get("generation", made["generation"]) != made["generation"]:
        return 404, "No such object"
    remove(path)
    return 204, None


def facts(bucket, key, path, about=None):
    """The facts that the store tells of an object."""
    about = about or os.stat(path)
    # A number that is larger for what is made later.
    generation = str(about.st_mtime_ns // 1000 * 4096 + about.st_ino % 4096)
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{key}/{generation}",
        "name": key,
        "bucket": bucket,
        "generation": generation,
        "metageneration": "1",
        "contentType": "application/octet-stream",
        "storageClass": "STANDARD",
        "size": str(about.st_size),
        "etag": f"etag-{generation}",
        "timeCreated": rfc3339(about.st_mtime),
        "updated": rfc3339(about.st_mtime),
    }


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


ROOT = sys.argv[1]
Handler.serve_from(ROOT)
CHANGES_LOCK = threading.Lock()
LATE = {}  # what is yet to be done, by method, bucket and key
UPLOADS = {}  # by their ids: key, bytes so far, and the facts of what was made

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()

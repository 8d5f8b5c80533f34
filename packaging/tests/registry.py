"""A registry for npm on this machine: serves the packages of a directory, whatever their number of versions."""

import base64
import hashlib
import http.server
import json
import pathlib
import tarfile
import threading
import urllib.parse


class Registry:
    """Serves every `.tgz` in `directory`; each is looked at again with each request."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handler(registry):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = urllib.parse.unquote(self.path.split("?")[0]).lstrip("/")
                body = registry.answer(name)
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def do_POST(self):  # npm asks for advisories.
                self.do_GET()

            def log_message(self, *_):
                pass

        return Handler

    def answer(self, name):
        if name.endswith(".tgz"):
            return (self.directory / name).read_bytes()
        versions = {}
        for path in sorted(self.directory.glob("*.tgz")):
            with tarfile.open(path) as tar:
                manifest = json.load(tar.extractfile("package/package.json"))
            if manifest["name"] == name:
                integrity = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
                dist = {"tarball": self.url + path.name, "integrity": "sha512-" + integrity}
                versions[manifest["version"]] = {**manifest, "dist": dist}
        if not versions:
            return None
        latest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
        return json.dumps({"name": name, "versions": versions, "dist-tags": {"latest": latest}}).encode()

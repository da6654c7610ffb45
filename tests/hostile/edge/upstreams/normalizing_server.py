"""Decodes and normalizes a path like Python's file server, and drops parameters like servlets."""
import http.server
import posixpath
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.split("?", 1)[0].split("#", 1)[0]
        path = "/".join(segment.split(";", 1)[0] for segment in path.split("/"))
        path = posixpath.normpath(urllib.parse.unquote(path).replace("\\", "/")).replace("//", "/")
        body = b"PAY" if path == "/v1/pay" else b"FILES" if path.startswith("/v1/files/") else b"nothing"
        self.send_response(200 if body != b"nothing" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()

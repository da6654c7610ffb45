"""Flask: escapes are decoded before routes are matched."""
import logging

from flask import Flask
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)
app = Flask(__name__)


@app.get("/v1/pay", strict_slashes=False)
def pay():
    return "PAY"


@app.get("/v1/files/<path:name>")
def files(name):
    return "FILES"


server = make_server("127.0.0.1", 0, app, threaded=True)
print("port", server.socket.getsockname()[1], flush=True)
server.serve_forever()

"""Ways to write a path so that a server resolves it to another path's page."""

import itertools
import random

SLASHES = ["//", "///", "%2F", "%2f", "\\", "%5C", "%5c", "/./", "/%2e/", "/x/../", "/x/%2e%2E/", "/x%2F..%2F",
           "/x%2f%2e%2e%2f", "/;a/", ";a/", ";a=b;c/", "%3Ba/", "/..;/", "/x/..;/", "/x/..;a/", "/.;/", "/%2e;/", "%252F",
           "%25%32%46", "%c0%af", "%e0%80%af", "%ef%bc%8f", "/\\", "\\/", "/%5c", "%2F/", "/%2F", "/x//../", "/%00/", "/%09",
           "/%20", "%3F/", "%23/", "#/", "/?/", "/x/..%2F", "/x/..%5C", "/x\\..\\"]
ENDS = ["/", "//", "/.", "/./", "/..", "/x/..", "/x/../", ";", ";a", ";a=b", ";/", "/;a", "%3B", "%3Ba", "?", "?x", "?/../y",
        "%3F", "%3Fx", "#", "#x", "%23", "%23x", "%00", "%00.html", "%20", "%0a", "%0d%0a", "%09", ".", "%2e", "\\", "%5C",
        "%2F", "%2f", "%2F.", "%2F..", "/%2e", "/%2e%2e", "/%2E%2e/v1/pay", "%252e", "%", "%2", "%zz", "%7f", "%c3%a9/..", "~", "'",
        "!", "%21", ",", "+", "%2B", ":", "%3A", "@", "&", "=", "|", "%7C", "`", "{", "}", "^", '"', "<", ">", "[", "]"]
STARTS = ["/", "//", "/x/..", "/.", "/..", "/%2e", "/%2e%2e", "/;a", ";a", "//host", "///host", "/x//..", "\\", "/\\host",
          "/%2F", "%2F", "/%5C", "http://host", "HTTP://host", "http://host/", "http://user@host", "ftp://host", "http:",
          "/v1%2F..", "/v1/..%2F", "/x%2F.."]


def mutated(path, generator):
    """The path with one place written differently."""
    kind = generator.randrange(5)
    places = [i for i, c in enumerate(path) if c == "/" and i > 0]
    if kind == 0 and places:
        at = generator.choice(places)
        return path[:at] + generator.choice(SLASHES) + path[at + 1:]
    if kind == 1:
        return path + generator.choice(ENDS)
    if kind == 2:
        return generator.choice(STARTS) + path
    at = generator.randrange(len(path))
    if kind == 3 and path[at].isascii():
        return path[:at] + generator.choice(["%%%02x", "%%%02X"]) % ord(path[at]) + path[at + 1:]
    return path[:at] + path[at].swapcase() + path[at + 1:]


def spellings(path, seed, count):
    """Every single change, and `count` random combinations of two or three changes."""
    found = {path, path.upper(), path.title()}
    for at, c in enumerate(path):
        found.update({path[:at] + "%%%02x" % ord(c) + path[at + 1:], path[:at] + "%%%02X" % ord(c) + path[at + 1:],
                      path[:at] + c.swapcase() + path[at + 1:], path[:at] + "%%25%02x" % ord(c) + path[at + 1:]})
        if c == "/":
            found.update(path[:at] + slash + path[at + 1:] for slash in SLASHES)
    found.update(path + end for end in ENDS)
    found.update(start + path for start in STARTS)
    found.update(start + path + end for start, end in itertools.product(STARTS[:8], ENDS[:12]))
    generator = random.Random(seed)
    for _ in range(count):
        text = path
        for _ in range(generator.randrange(2, 4)):
            text = mutated(text, generator)
        found.add(text)
    # Bytes that end a request line are covered by the parsers' own tests.
    return sorted(text for text in found if " " not in text and "\n" not in text)

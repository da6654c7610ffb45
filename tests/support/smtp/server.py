"""A real mail server for tests. Usage: server.py PORT [CERTIFICATE KEY]

Prints "ready" when it listens, then each mail that it accepts as a line of JSON: sender, recipient, headers and
text. Recipients at later.test are refused temporarily (451), at gone.test permanently (550). With a certificate it
accepts mail only after STARTTLS and a login as "weir" with the password "sesame".
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Mailbox:
    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.endswith("@later.test"):
            return "451 try again later"
        if address.endswith("@gone.test"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "id": mail["Message-ID"],
                          "subject": mail["Subject"], "text": mail.get_content(), "tls": session.ssl is not None}),
              flush=True)
        return "250 OK"


def login(_server, _session, _envelope, _mechanism, given):
    return AuthResult(success=(given.login, given.password) == (b"weir", b"sesame"))


def security(files):
    if not files:
        return {}
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    return {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": login}


async def main():
    options = security(sys.argv[2:])
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Mailbox(), hostname="mail.test", **options), "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())

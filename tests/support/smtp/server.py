"""A real mail server for tests. Usage: server.py PORT

Says "ready" when it listens and then prints each mail that it takes as a line of JSON: sender, recipient, headers and
text. Recipients at later.test are refused for now (451), at gone.test for good (550).
"""

import asyncio
import email
import email.policy
import json
import sys

from aiosmtpd.smtp import SMTP


class Mailbox:
    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.endswith("@later.test"):
            return "451 try again later"
        if address.endswith("@gone.test"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "id": mail["Message-ID"],
                          "subject": mail["Subject"], "text": mail.get_content()}), flush=True)
        return "250 OK"


async def main():
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Mailbox(), hostname="mail.test"), "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()


asyncio.run(main())

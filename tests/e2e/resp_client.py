"""Drives a RESP endpoint with Python's redis package: resp_client.py PORT plain | auth KEY | tls CA."""

import concurrent.futures
import sys

import redis


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def throttle(client, key, *rate):
    return client.execute_command("CL.THROTTLE", key, *rate)


def plain(client):
    expect(client.ping(), True)
    expect(client.echo("héllo"), "héllo".encode())
    # Three permits, one refilled per hour.
    expect(throttle(client, "py", 2, 1, 3600), [0, 3, 2, -1, 3600])
    expect(throttle(client, "py", 2, 1, 3600, 0)[:4], [0, 3, 2, -1])
    expect(throttle(client, "py", 2, 1, 3600, 4)[:4], [1, 3, 2, -1])

    pipeline = client.pipeline(transaction=False)
    for _ in range(1000):
        pipeline.execute_command("CL.THROTTLE", "pipelined", 49, 1, 3600)
    replies = pipeline.execute()
    expect(len(replies), 1000)
    expect([reply[0] for reply in replies], [0] * 50 + [1] * 950)

    # Many threads on one pool: together they get exactly what the limit grants.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        shared = list(pool.map(lambda _: throttle(client, "shared", 99, 1, 3600)[0], range(400)))
    expect(shared.count(0), 100)

    expect(client.execute_command("WEIR.CHECK", "somebody")[0], 0)
    expect(client.client_setname("tester"), True)
    expect(client.info()["server_name"], "weir")
    try:
        throttle(client, "py", 1, 0, 1)
        raise AssertionError("a zero rate was accepted")
    except redis.ResponseError as error:
        expect("Zero rates are not supported" in str(error), True)


def main():
    port, mode = int(sys.argv[1]), sys.argv[2]
    if mode == "plain":
        plain(redis.Redis(port=port))
    elif mode == "auth":
        plain(redis.Redis(port=port, password=sys.argv[3]))
        plain_error = None
        try:
            redis.Redis(port=port).ping()
        except redis.AuthenticationError as error:
            plain_error = error
        expect(plain_error is not None, True)
        try:
            redis.Redis(port=port, password="wrong").ping()
            raise AssertionError("a wrong password was accepted")
        except (redis.AuthenticationError, redis.ResponseError):
            pass
    elif mode == "tls":
        plain(redis.Redis(port=port, ssl=True, ssl_ca_certs=sys.argv[3]))
    else:
        sys.exit(f"unknown mode {mode}")


if __name__ == "__main__":
    main()

# The program alone on Debian 12, built by the command that developers and tests use.
#   docker build -t weir .
FROM debian:12-slim AS build
WORKDIR /weir
# The packages first: they change less often than the code.
COPY packages-program.txt ./
# hadolint ignore=DL3008
RUN apt-get update \
    && sed 's/#.*//' packages-program.txt >/tmp/packages \
    && xargs --arg-file=/tmp/packages apt-get install -y --no-install-recommends \
    && rm -rf /var/lib/apt/lists/*
COPY . .
RUN ./dev build release weir && strip build/release/weir

FROM debian:12-slim
# The shared libraries that the program is linked with; a test compares the list. Their versions are Debian 12's.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libabsl20220623 libcurl4 libfmt9 libhiredis0.14 \
       libmariadb3 \
       libnghttp2-14 libpq5 libprotobuf32 librdkafka1 libsimdjson14 libsqlite3-0 libssl3 \
       libyaml-cpp0.7 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/weir --create-home weir
COPY --from=build /weir/build/release/weir /usr/local/bin/weir
# By number, so that Kubernetes sees that it is not root.
USER 10001:10001
WORKDIR /var/lib/weir
VOLUME /var/lib/weir
EXPOSE 8080 8081 6380
HEALTHCHECK --interval=5s --timeout=4s --start-period=10s --retries=5 CMD ["weir", "healthcheck"]
ENTRYPOINT ["weir"]
CMD ["serve"]

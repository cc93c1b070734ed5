# SPDX-License-Identifier: Apache-2.0
# An image with the libraries of weft and the command `weft`:
#
#   docker build -t weft .
#   docker run --rm weft weft --help
#   docker run --rm -it --name n1 --hostname n1 weft erl -proto_dist weft -sname n1 -setcookie secret
#
# Where no Docker daemon runs, root can build it with buildah, and try commands in it:
#
#   buildah bud --isolation chroot -t weft .
#   buildah run --isolation chroot $(buildah from weft) weft --help
#
# To run a release of your own, take the second stage as a pattern: a release brings its libraries,
# and its vm.args has -proto_dist weft. `weft doctor --node NAME@HOST` examines a node that runs.

FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make
WORKDIR /src
COPY . .
RUN make compile
# The applications that need nothing but OTP; the sources they are linked with stay behind.
RUN mkdir -p /out/lib && for app in weft sd_erlang weft_partisan weft_chaos weft_crdt weft_diasca \
    weft_ring weft_kv; do mkdir /out/lib/$app && cp -rL _build/default/lib/$app/ebin /out/lib/$app/; done

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
    erlang-asn1 erlang-base erlang-crypto erlang-public-key erlang-runtime-tools erlang-ssh \
    erlang-ssl erlang-syntax-tools openssh-client procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/lib /opt/weft/lib
COPY --from=build /src/_build/default/bin/weft /usr/local/bin/weft
ENV ERL_LIBS=/opt/weft/lib
RUN useradd --create-home weft
USER weft
WORKDIR /home/weft
# epmd. Nodes listen on ports of their own; -kernel inet_dist_listen_min and _max fix them.
EXPOSE 4369
CMD ["weft", "--help"]

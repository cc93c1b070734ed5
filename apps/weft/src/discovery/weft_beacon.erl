%% SPDX-License-Identifier: Apache-2.0
%% @doc The datagram by which a node announces itself on its network (`weft_discovery_gossip').
%%
%% Layout: "weft", version (1 byte), HMAC-SHA256 of all that follows (32 bytes), length and name of
%% the cluster (1 byte, n), length and name of the node (1 byte, n). The key is derived from the
%% cookie, so that only nodes of the cluster can make a valid datagram. A replayed copy says no more
%% than that this node was there; a node that is dialled for it still has to authenticate itself.
%% Nothing of a datagram is used before the HMAC is found right.
-module(weft_beacon).

-export([key/1, encode/3, decode/3]).
-export_type([key/0]).

-define(MAGIC, "weft").
-define(VERSION, 1).
-define(MAC_BYTES, 32).

-opaque key() :: binary().

%% @doc The key of a cluster.
-spec key(Cookie :: atom()) -> key().
key(Cookie) ->
    crypto:mac(hmac, sha256, atom_to_binary(Cookie), <<"weft beacon 1">>).

%% @doc The datagram of a node.
-spec encode(key(), Cluster :: binary(), node()) -> binary().
encode(Key, Cluster, Node) ->
    Name = atom_to_binary(Node),
    Body = <<(byte_size(Cluster)), Cluster/binary, (byte_size(Name)), Name/binary>>,
    <<?MAGIC, ?VERSION, (crypto:mac(hmac, sha256, Key, Body))/binary, Body/binary>>.

%% @doc The name of the node that made a datagram. Errors: not of this protocol and version, made
%% with another cookie (or changed), of another cluster.
-spec decode(key(), Cluster :: binary(), Datagram :: binary()) ->
          {ok, Name :: string()} | {error, not_a_beacon | other_cookie | other_cluster}.
decode(Key, Cluster, <<?MAGIC, ?VERSION, Mac:?MAC_BYTES/binary, Body/binary>>) ->
    case {crypto:hash_equals(Mac, crypto:mac(hmac, sha256, Key, Body)), Body} of
        {false, _} -> {error, other_cookie};
        {true, <<N, Cluster:N/binary, M, Name:M/binary>>} -> {ok, binary_to_list(Name)};
        {true, _} -> {error, other_cluster}
    end;
decode(_Key, _Cluster, _Datagram) ->
    {error, not_a_beacon}.

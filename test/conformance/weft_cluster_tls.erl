%% SPDX-License-Identifier: Apache-2.0
%% @doc Certificates for the TLS cluster: one authority made on the spot and one certificate for
%% both roles, written as PEM files. For tests only, the key lies in the test directory.
-module(weft_cluster_tls).

-include_lib("public_key/include/public_key.hrl").

-export([options/1]).

%% @doc TLS options with files in Dir, which are written if not there.
-spec options(file:filename()) -> [tuple()].
options(Dir) ->
    Authority = filename:join(Dir, "authority.pem"),
    Certificate = filename:join(Dir, "certificate.pem"),
    Key = filename:join(Dir, "key.pem"),
    filelib:is_regular(Key) orelse write(Authority, Certificate, Key),
    [{certfile, Certificate}, {keyfile, Key}, {cacertfile, Authority}, {verify, verify_peer}].


write(Authority, Certificate, Key) ->
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => chain(), client_chain => chain()}),
    {KeyType, KeyDer} = proplists:get_value(key, Config),
    ok = file:write_file(Authority, pem([{'Certificate', Der}
                                         || Der <- proplists:get_value(cacerts, Config)])),
    ok = file:write_file(Certificate, pem([{'Certificate', proplists:get_value(cert, Config)}])),
    ok = file:write_file(Key, pem([{KeyType, KeyDer}])).

%% The nodes' host is an address, and the certificate is for it.
chain() ->
    Key = {key, {namedCurve, secp256r1}},
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                         extnValue = [{iPAddress, <<127, 0, 0, 1>>}, {dNSName, "127.0.0.1"}]},
    #{root => [Key], intermediates => [], peer => [Key, {extensions, [Names]}]}.

pem(Entries) ->
    public_key:pem_encode([{Type, Der, not_encrypted} || {Type, Der} <- Entries]).

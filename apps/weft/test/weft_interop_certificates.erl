%% SPDX-License-Identifier: Apache-2.0
%% @doc Certificates for nodes on 127.0.0.1 from one of several authorities, made on the spot. For
%% tests only: keys lie in the directory of the test.
-module(weft_interop_certificates).

-include_lib("public_key/include/public_key.hrl").

-export([options/3]).

%% @doc TLS options with files in Dir: a certificate of Authority (or none), and trust in others.
-spec options(file:filename(), Authority :: atom(), Trusted :: [atom()]) -> [tuple()].
options(Dir, Authority, Trusted) ->
    All = filename:join(Dir, lists:concat(["trusted_by_", Authority, ".pem"])),
    Pems = [begin
                {ok, Pem} = file:read_file(maps:get(authority, files(Dir, Name))),
                Pem
            end || Name <- Trusted],
    ok = file:write_file(All, Pems),
    [{cacertfile, All}, {verify, verify_peer} | own(Dir, Authority)].

own(_Dir, none) ->
    [];
own(Dir, Authority) ->
    #{certificate := Certificate, key := Key} = files(Dir, Authority),
    [{certfile, Certificate}, {keyfile, Key}].

files(Dir, Authority) ->
    Files = maps:from_list([{What, filename:join(Dir, lists:concat([Authority, "_", What, ".pem"]))}
                            || What <- [authority, certificate, key]]),
    filelib:is_regular(maps:get(key, Files)) orelse write(Files),
    Files.

write(#{authority := Authority, certificate := Certificate, key := Key}) ->
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => chain(), client_chain => chain()}),
    {KeyType, KeyDer} = proplists:get_value(key, Config),
    %% The peer of these test data is trusted by the other chain; here all nodes use one.
    ok = file:write_file(Authority, pem([{'Certificate', Der}
                                         || Der <- proplists:get_value(cacerts, Config)])),
    ok = file:write_file(Certificate, pem([{'Certificate', proplists:get_value(cert, Config)}])),
    ok = file:write_file(Key, pem([{KeyType, KeyDer}])).

chain() ->
    Key = {key, {namedCurve, secp256r1}},
    Digest = {digest, sha256}, % the default, SHA-1, is refused by ssl of OTP 27 and later
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                         extnValue = [{iPAddress, <<127, 0, 0, 1>>}, {dNSName, "127.0.0.1"}]},
    #{root => [Key, Digest], intermediates => [],
      peer => [Key, Digest, {extensions, [Names]}]}.

pem(Entries) ->
    public_key:pem_encode([{Type, Der, not_encrypted} || {Type, Der} <- Entries]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Certificates for a local cluster: one authority and one certificate for all its nodes, made
%% when the cluster starts. For trying out; they protect nothing from who can read the directory.
-module(weft_local_tls).

-export([options/1, create/1]).

-include_lib("public_key/include/public_key.hrl").

-define(DAYS, 3650).

%% @doc The value of {weft, tls_options} with the files that create/1 writes to Dir.
-spec options(file:filename()) -> [tuple()].
options(Dir) ->
    [{certfile, filename:join(Dir, "certificate.pem")}, {keyfile, filename:join(Dir, "key.pem")},
     {cacertfile, filename:join(Dir, "authority.pem")}, {verify, verify_peer}].

%% @doc Writes the files.
-spec create(file:filename()) -> ok.
create(Dir) ->
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => chain(), client_chain => chain()}),
    Authorities = [{'Certificate', Der, not_encrypted}
                   || Der <- proplists:get_value(cacerts, Config)],
    {KeyType, Key} = proplists:get_value(key, Config),
    ok = weft_deploy_private:directory(Dir),
    ok = write(Dir, "authority.pem", Authorities),
    ok = write(Dir, "certificate.pem",
               [{'Certificate', proplists:get_value(cert, Config), not_encrypted}]),
    weft_deploy_private:write(filename:join(Dir, "key.pem"),
                              public_key:pem_encode([{KeyType, Key, not_encrypted}]), 8#600).

write(Dir, Name, Entries) ->
    file:write_file(filename:join(Dir, Name), public_key:pem_encode(Entries)).

%% Nodes are called by their address.
chain() ->
    Key = {key, {namedCurve, secp256r1}},
    Digest = {digest, sha256}, % the default, SHA-1, is refused by ssl of OTP 27 and later
    %% Otherwise a cluster could resume no session after a week. The hour of the day is not ours to
    %% choose, so they begin the day before.
    Today = calendar:date_to_gregorian_days(date()),
    Validity = {validity, {calendar:gregorian_days_to_date(Today - 1),
                           calendar:gregorian_days_to_date(Today + ?DAYS)}},
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                         extnValue = [{iPAddress, <<127, 0, 0, 1>>}, {dNSName, "127.0.0.1"}]},
    #{root => [Key, Digest, Validity], intermediates => [],
      peer => [Key, Digest, Validity, {extensions, [Names]}]}.

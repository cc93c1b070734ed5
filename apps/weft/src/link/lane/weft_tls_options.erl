%% SPDX-License-Identifier: Apache-2.0
%% @doc Whether {weft, tls_options} can work at all with {weft, transport} tls; checked when the
%% node boots. Without a certificate of its own a node could be started, but would reach no other.
%%
%% Files are opened here only to see whether they contain the right kind of data. Other faults of
%% certificates are found when two nodes connect (`weft_refusals').
-module(weft_tls_options).

-export([check/0, check/2]).

%% @doc Checks this node. The text says what is wrong, in which option, and what to write.
-spec check() -> ok | {error, string()}.
check() ->
    check(weft_config:get(transport), weft_config:get(tls_options)).

-spec check(tcp | tls, [term()]) -> ok | {error, string()}.
check(tcp, _Options) ->
    ok;
check(tls, Options) ->
    case lists:append([missing(has_own(Options), trusts(Options)), certificates(certfile, Options),
                       certificates(cacertfile, Options), keys(Options)]) of
        [] -> ok;
        Wrong -> {error, unicode:characters_to_list(
                           ["weft: transport is tls, and ", lists:join("; ", Wrong)])}
    end.

missing(false, _Trusts) ->
    ["tls_options has no certificate of this node: write {tls_options, [{certfile, File}, "
     "{keyfile, File}, {cacertfile, File}]}, with files in PEM"];
missing(true, false) ->
    ["tls_options names no authority to trust: add {cacertfile, File}, with the certificate of the "
     "authority that has signed those of the other nodes"];
missing(true, true) ->
    [].

%% Options with functions that compute certificates are not checked.
has_own(Options) ->
    has_any([cert, certfile, certs_keys, sni_fun, sni_hosts], Options).

trusts(Options) ->
    has_any([cacerts, cacertfile, verify_fun], Options)
        orelse proplists:get_value(verify, Options, verify_peer) =/= verify_peer.

has_any(Keys, Options) ->
    lists:any(fun(Key) -> lists:keymember(Key, 1, Options) end, Keys).

certificates(Key, Options) ->
    [[atom_to_list(Key), " of tls_options is ", name(File), ": ", Why]
     || {K, File} <- Options, K =:= Key, Why <- read(File, "CERTIFICATE", "certificate")].

%% A key may be in the file of the certificate.
keys(Options) ->
    [["keyfile of tls_options is ", name(File), ": ", Why]
     || {keyfile, File} <- Options, Why <- read(File, "KEY", "key")].

read(File, Label, What) ->
    %% Distribution starts before the file server.
    try prim_file:read_file(File) of
        {ok, Pem} ->
            [["it holds no ", What, " in PEM"]
             || re:run(Pem, "^-----BEGIN (.* )?" ++ Label ++ "-----", [multiline]) =:= nomatch];
        {error, Reason} ->
            [[file:format_error(Reason), ", as this node sees it"]]
    catch
        error:_ -> ["that is no file name"]
    end.

name(File) when is_binary(File) -> File;
name(File) -> io_lib:format("~0tp", [File]).

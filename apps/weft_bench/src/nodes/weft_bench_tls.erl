%% SPDX-License-Identifier: Apache-2.0
%% @doc A certificate for the nodes of a benchmark, made on the spot by an authority of its own, and
%% the same options for stock and weft: both sides verify each other. The key is good for nothing
%% else. It lies in a directory of its own, not beside results, and goes with the nodes.
-module(weft_bench_tls).

-include_lib("public_key/include/public_key.hrl").

-export([new/1, remove/1, remove_own/0, options/1, options_file/1]).

%% @doc Writes certificate, key and options for nodes on these addresses into a new directory.
-spec new(Addresses :: [string()]) -> Dir :: file:filename().
new(Addresses) ->
    ok = remove_left_over(),
    Dir = filename:join(root(), lists:concat([os:getpid(), "-",
                                              erlang:unique_integer([positive])])),
    ok = weft_report_file:directory(Dir),
    ok = file:change_mode(Dir, 8#700),
    ok = write(Dir, Addresses),
    Dir.

root() -> filename:basedir(user_cache, "weft_bench_tls").

%% @doc Removes what new/1 has made.
-spec remove(Dir :: file:filename()) -> ok.
remove(Dir) ->
    _ = file:del_dir_r(Dir),
    ok.

%% @doc All that this emulator has made.
-spec remove_own() -> ok.
remove_own() -> remove_those(fun(OsPid) -> OsPid =:= os:getpid() end).

%% What emulators have made that were ended.
remove_left_over() ->
    remove_those(fun(OsPid) -> not filelib:is_dir("/proc/" ++ OsPid) end).

remove_those(IsMeant) ->
    lists:foreach(fun remove/1, [filename:join(root(), Name)
                                 || Name <- filelib:wildcard("*-*", root()),
                                    IsMeant(hd(string:split(Name, "-")))]).

write(Dir, Addresses) ->
    #{server_config := Config} =
        public_key:pkix_test_data(#{server_chain => chain(Addresses),
                                    client_chain => chain(Addresses)}),
    {KeyType, KeyDer} = proplists:get_value(key, Config),
    Authorities = [{'Certificate', Der} || Der <- proplists:get_value(cacerts, Config)],
    ok = weft_report_file:write(file(Dir, authority), pem(Authorities)),
    ok = weft_report_file:write(file(Dir, certificate),
                                pem([{'Certificate', proplists:get_value(cert, Config)}])),
    ok = weft_report_file:write(file(Dir, key), pem([{KeyType, KeyDer}])),
    Server = [{fail_if_no_peer_cert, true} | options(Dir)],
    weft_report_file:write(options_file(Dir),
                           io_lib:format("~p.~n", [[{server, Server}, {client, options(Dir)}]])).

%% @doc Options of ssl that use what new/1 wrote.
-spec options(Dir :: file:filename()) -> [{atom(), term()}].
options(Dir) ->
    [{certfile, file(Dir, certificate)}, {keyfile, file(Dir, key)},
     {cacertfile, file(Dir, authority)}, {verify, verify_peer}].

%% @doc The same as a file for `-ssl_dist_optfile'.
-spec options_file(Dir :: file:filename()) -> file:filename().
options_file(Dir) ->
    filename:absname(filename:join(Dir, "ssl_dist.config")).

file(Dir, Name) ->
    filename:absname(filename:join(Dir, lists:concat([Name, ".pem"]))).

%% The hosts of the nodes are addresses; what looks names up compares them as text.
chain(Addresses) ->
    Key = {key, {namedCurve, secp256r1}},
    Digest = {digest, sha256}, % the default, SHA-1, is refused by ssl of OTP 27 and later
    Bytes = [list_to_binary(tuple_to_list(element(2, inet:parse_address(Address))))
             || Address <- Addresses],
    Names = #'Extension'{extnID = ?'id-ce-subjectAltName', critical = false,
                         extnValue = [{iPAddress, Address} || Address <- Bytes]
                             ++ [{dNSName, Address} || Address <- Addresses]},
    #{root => [Key, Digest], intermediates => [],
      peer => [Key, Digest, {extensions, [Names]}]}.

pem(Entries) ->
    public_key:pem_encode([{Type, Der, not_encrypted} || {Type, Der} <- Entries]).

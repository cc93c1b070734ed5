%% SPDX-License-Identifier: Apache-2.0
%% @doc What went wrong, as an answer: a status and a JSON object that says what (`error',
%% `message'), where (`where') and what to do (`do'). Pure.
-module(weft_kv_http_error).

-export([answer/2]).
-export_type([answer/0]).

-type answer() :: {Status :: 200..599, cowboy:http_headers(), iodata()}.

%% @doc The answer to a request for this path. Reasons are those of `weft_kv', and of this
%% application.
-spec answer(term(), Path :: binary()) -> answer().
answer(Reason, Path) ->
    {Status, Word, Message, Do} = described(Reason),
    Headers = #{<<"content-type">> => <<"application/json">>, <<"cache-control">> => <<"no-store">>,
                <<"x-content-type-options">> => <<"nosniff">>},
    {Status, maps:merge(Headers, more(Reason)),
     [weft_json:encode(#{error => Word, message => iolist_to_binary(Message), where => Path,
                         do => iolist_to_binary(Do)}), $\n]}.

more(no_token) -> #{<<"www-authenticate">> => <<"Bearer">>};
more({method, Allowed}) -> #{<<"allow">> => Allowed};
more({busy, _}) -> (retry_after(1))#{<<"connection">> => <<"close">>};
more(overload) -> retry_after(1);
more({too_few, _}) -> retry_after(1);
more(timeout) -> retry_after(1);
more({Reason, _}) when Reason =:= not_done; Reason =:= unknown -> retry_after(1);
more(Reason) when Reason =:= no_ring; Reason =:= not_running -> retry_after(5);
more({too_large, _}) -> #{<<"connection">> => <<"close">>};
more(slow) -> #{<<"connection">> => <<"close">>};
more(_) -> #{}.

retry_after(Seconds) -> #{<<"retry-after">> => integer_to_binary(Seconds)}.

described({forbidden, host}) ->
    {403, forbidden, <<"this is no name of the store">>,
     <<"use an address or localhost, or name it in `hosts' of weft_kv_http">>};
described({forbidden, page}) ->
    {403, forbidden, <<"a page of another origin may not use the store">>,
     <<"ask from the server of that page">>};
described(no_token) ->
    {401, no_token, <<"the token is missing, or wrong">>,
     <<"send the header Authorization: Bearer TOKEN">>};
described(no_path) ->
    {404, no_path, <<"there is nothing at this path">>,
     <<"see /buckets; in a key write / as %2F">>};
described(bad_path) ->
    {400, bad_path, <<"the path has a % without two hexadecimal digits">>, <<"write % as %25">>};
described({method, Allowed}) ->
    {405, method, <<"this can not be done here">>, <<"use one of ", Allowed/binary>>};
described({header, Name}) ->
    {400, bad_header, <<"the header ", Name/binary, " can not be read">>, <<"leave it out">>};
described({query, Name}) ->
    {400, bad_query, <<"this is not known, or no such number: ", Name/binary>>,
     <<"r, w, pr, pw, nodes, ttl_ms, timeout_ms of a key, limit and after of a list">>};
described({busy, Max}) ->
    {503, busy, [<<"there are ">>, integer_to_binary(Max), <<" requests already">>],
     <<"try again, or ask another node; connections_max of weft_kv_http is the limit">>};
described(not_found) ->
    {404, not_found, <<"there is no such key">>, <<"put a value">>};
described(unknown_bucket) ->
    {404, unknown_bucket, <<"there is no such bucket">>,
     <<"use one of /buckets; buckets are configured on the nodes">>};
described(changed) ->
    {412, changed, <<"the key is not as the condition says">>,
     <<"get it, and put what you make of that with its ETag in If-Match">>};
described(unconditional) ->
    {428, unconditional, <<"the key has a value already, and the request does not know it">>,
     <<"get it, and send its ETag in If-Match; If-Match: * replaces what is there">>};
described(no_conditions) ->
    {400, no_conditions, <<"this bucket keeps the later one of two values, so no condition of a "
                           "write would hold">>,
     <<"leave out If-Match and If-None-Match, or use a bucket with siblings or a strong one">>};
described({too_large, Max}) ->
    {413, too_large, [<<"a value of this bucket has at most ">>, integer_to_binary(Max),
                      <<" bytes">>], <<"cut it, or raise value_max of the bucket">>};
described(slow) ->
    {408, slow, <<"the value did not arrive in time">>, <<"send it faster, or raise body_ms">>};
described(Reason) ->
    of_store(Reason).

of_store(bad_key) ->
    {400, bad_key, <<"keys have 1 to 4096 bytes">>, <<"use a shorter one">>};
of_store(bad_context) ->
    {400, bad_context, <<"this is no context, or that of another key">>,
     <<"send Weft-Context as it came with the value, or leave it out">>};
of_store({too_many_siblings, Max}) ->
    {409, too_many_siblings,
     [<<"there are ">>, integer_to_binary(Max),
      <<" values already, of writes that did not know each other; nothing was done">>],
     <<"get the key, and put what these amount to with its Weft-Context">>};
of_store(bad_cursor) ->
    {400, bad_cursor, <<"this is no place to go on">>,
     <<"send `after' as `next' of the list before, or leave it out">>};
of_store({Wrong, What}) when Wrong =:= bad_option; Wrong =:= unknown_option ->
    {400, bad_option, [<<"the bucket does not allow this: ">>, term(What)], <<"see /buckets">>};
of_store(overload) ->
    {503, overload, <<"too many requests run on this node; nothing was done">>,
     <<"try again later, or at another node">>};
of_store({too_few, #{needed := Needed, answered := Answered}}) ->
    {503, too_few, [<<"too few replicas: ">>, term(Needed), <<" needed, ">>,
                    integer_to_binary(Answered), <<" answered">>],
     <<"try again: a write may be there already, and can be repeated">>};
of_store(timeout) ->
    {503, timeout, <<"the replicas did not answer in time">>,
     <<"try again: a write may be there already, and can be repeated">>};
of_store(Reason) when Reason =:= no_ring; Reason =:= not_running ->
    {503, Reason, <<"the store does not run on this node, or has no ring yet">>,
     <<"try again later, or at another node">>};
of_store({only_with, _}) ->
    {400, only_with, <<"strong buckets are not listed">>, <<"ask for keys by name">>};
of_store({not_done, _}) ->
    {503, not_done, <<"the replicas did not do it, and will not">>, <<"try again">>};
of_store({unknown, _}) ->
    {503, unknown, <<"it may have been done, or may be done later">>,
     <<"get the key to see, then try again">>};
of_store(_Unknown) ->
    {500, failed, <<"this failed; the log of the node says more">>, <<"try again">>}.

term(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).

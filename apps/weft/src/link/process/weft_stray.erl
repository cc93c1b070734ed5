%% SPDX-License-Identifier: Apache-2.0
%% @doc What a process of weft does with a message or a call that is not for it: it logs it and goes
%% on, like the kernel's own processes. Any process can send to a registered name, and a logger
%% handler may leave messages with the process that logs; neither may end a process that connections
%% depend on.
%%
%% Each process writes a limited number of lines in a period. Further ones are counted, and their
%% number is logged with the first line of the next period.
-module(weft_stray).

-export([call/1, message/1, format/1]).

-define(LINES_MAX, 10).
-define(PERIOD_MS, 10000).
%% How much of a term is shown; it may be large.
-define(SHOWN_DEPTH, 20).
-define(SHOWN_CHARACTERS, 500).

%% @doc The reply to a call that the calling server does not know.
-spec call(Request :: term()) -> {error, {unknown_request, term()}}.
call(Request) ->
    ok = told(call, Request),
    {error, {unknown_request, Request}}.

%% @doc A message, or a cast, is dropped.
-spec message(term()) -> ok.
message(Message) -> told(message, Message).

told(Kind, Term) ->
    NowMs = erlang:monotonic_time(millisecond),
    case get(?MODULE) of
        {SinceMs, Lines, Silent} when NowMs - SinceMs < ?PERIOD_MS, Lines >= ?LINES_MAX ->
            set({SinceMs, Lines, Silent + 1});
        {SinceMs, Lines, Silent} when NowMs - SinceMs < ?PERIOD_MS ->
            %% Set first, because logging may leave another stray message here.
            set({SinceMs, Lines + 1, Silent}),
            log(Kind, Term, 0);
        {_SinceMs, _Lines, Silent} ->
            set({NowMs, 1, 0}),
            log(Kind, Term, Silent);
        undefined ->
            set({NowMs, 1, 0}),
            log(Kind, Term, 0)
    end.

set(Told) ->
    _ = put(?MODULE, Told),
    ok.

log(Kind, Term, Silent) ->
    Shown = io_lib:format("~0tP", [Term, ?SHOWN_DEPTH], [{chars_limit, ?SHOWN_CHARACTERS}]),
    %% Without a domain, because the default handler of OTP drops domains that it does not know.
    logger:warning(#{what => stray, kind => Kind, process => name(), shown => lists:flatten(Shown),
                     not_told => Silent},
                   #{report_cb => fun ?MODULE:format/1}).

name() ->
    case process_info(self(), registered_name) of
        {registered_name, Name} -> Name;
        _ -> proc_lib:translate_initial_call(self())
    end.

%% @private
-spec format(map()) -> {io:format(), [term()]}.
format(#{what := stray, kind := Kind, process := Name, shown := Shown, not_told := 0}) ->
    {"weft: ~0tp got an unknown ~ts, which it dropped: ~ts", [Name, kind(Kind), Shown]};
format(#{what := stray, kind := Kind, process := Name, shown := Shown, not_told := Silent}) ->
    {"weft: ~0tp got an unknown ~ts, which it dropped (and ~b before it): ~ts",
     [Name, kind(Kind), Silent, Shown]}.

kind(call) -> "call";
kind(message) -> "message".

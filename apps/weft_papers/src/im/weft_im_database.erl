%% SPDX-License-Identifier: Apache-2.0
%% @doc A table of a server of the Instant Messenger, and the copy of it on another server.
%%
%% `client_db' has rows {Client, Pid, MonitorPid}, `chat_db' rows {Conversation, SessionPid, APid,
%% BPid}. All writes go to the main table, which passes them on to its copy and only then answers;
%% reads go to either. A table that is started anew takes its name again and asks the other one for
%% all rows. What comes meanwhile waits in its mailbox: as rows are put or deleted as a whole, what
%% is in both is done twice without harm.
%%
%% If main table and copy are lost at the same time the table is empty; monitors of clients put
%% their rows again with each sign of life of their clients.
-module(weft_im_database).

-export([put/4, refresh/3, delete/4, find/4, rows/3]).
-export([init/5]).

-type name() :: {client_db | chat_db, Server :: pos_integer(), main | replica}.
-type db() :: {client_db | chat_db, Server :: pos_integer()}.

%% Twice while the other one starts as well.
-define(FILL_MS, 2000).
-define(TRIES_MAX, 30).

%% @private
-spec init(weft_im_plan:service(), fresh | again, client_db | chat_db, pos_integer(),
           main | replica) -> no_return().
init(Service, How, Kind, Server, Copy) ->
    put(weft_im, Kind),
    case weft_im_names:claim(Service, {Kind, Server, Copy}) of
        ok ->
            Table = ets:new(Kind, [set, protected]),
            true = ets:insert(Table, filling(How, Service, {Kind, Server, other(Copy)})),
            loop(Table, Service, {Kind, Server, Copy});
        {taken, Pid} ->
            exit({taken, Pid})
    end.

other(main) -> replica;
other(replica) -> main.

filling(fresh, _Service, _Other) ->
    [];
filling(again, Service, Other) ->
    Ref = make_ref(),
    ok = weft_im_ways:send(Service, Other, {fill, self(), Ref}),
    filled(Ref, Service, erlang:monotonic_time(millisecond) + ?FILL_MS).

%% If both ask each other, neither has anything. All others have to wait.
filled(Ref, Service, Deadline) ->
    receive
        {Ref, Rows} -> Rows;
        {fill, From, Asked} ->
            ok = weft_im_ways:send(Service, From, {Asked, []}),
            filled(Ref, Service, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> []
    end.

loop(Table, Service, Name) ->
    receive
        Message -> ok = handle(Message, Table, Service, Name)
    end,
    loop(Table, Service, Name).

handle({{write, Change}, From, Ref}, Table, Service, Name) ->
    ok = change(Change, Table, Service, Name),
    weft_im_ways:send(Service, From, {Ref, ok});
handle({write, Change}, Table, Service, Name) ->
    change(Change, Table, Service, Name);
handle({{find, Key}, From, Ref}, Table, Service, _Name) ->
    weft_im_ways:send(Service, From, {Ref, ets:lookup(Table, Key)});
handle({All, From, Ref}, Table, Service, _Name) when All =:= rows; All =:= fill ->
    weft_im_ways:send(Service, From, {Ref, ets:tab2list(Table)});
handle(_Late, _Table, _Service, _Name) ->
    ok.

change(Change, Table, Service, {Kind, Server, Copy}) ->
    true = case Change of
               {put, Row} -> ets:insert(Table, Row);
               {delete, Key} -> ets:delete(Table, Key)
           end,
    case Copy of
        main -> weft_im_ways:send(Service, {Kind, Server, replica}, {write, Change});
        replica -> ok
    end.

%% @doc Puts a row; asks again until that is done, or has been in vain for too long.
-spec put(weft_im_plan:service(), client_db | chat_db, Server :: pos_integer(), tuple()) ->
          ok | no_answer.
put(Service, Kind, Server, Row) ->
    write(Service, {Kind, Server}, {put, Row}, ?TRIES_MAX).

%% @doc Puts a row that is probably there, and waits for nothing.
-spec refresh(weft_im_plan:service(), db(), tuple()) -> ok.
refresh(Service, {Kind, Server}, Row) ->
    weft_im_ways:send(Service, {Kind, Server, main}, {write, {put, Row}}).

-spec delete(weft_im_plan:service(), client_db | chat_db, Server :: pos_integer(),
             Key :: term()) -> ok | no_answer.
delete(Service, Kind, Server, Key) ->
    write(Service, {Kind, Server}, {delete, Key}, ?TRIES_MAX).

write(_Service, _Db, _Change, 0) ->
    no_answer;
write(#{resend_ms := AgainMs} = Service, {Kind, Server} = Db, Change, Tries) ->
    case weft_im_ways:call(Service, {Kind, Server, main}, {write, Change}, AgainMs) of
        {ok, ok} -> ok;
        no_answer -> write(Service, Db, Change, Tries - 1)
    end.

%% @doc The row, from the main table or its copy, beginning with either. No answer: neither answers.
-spec find(weft_im_plan:service(), db(), Key :: term(), First :: main | replica) ->
          {ok, tuple()} | none | no_answer.
find(#{resend_ms := TimeoutMs} = Service, {Kind, Server}, Key, First) ->
    Ask = fun(Copy) -> weft_im_ways:call(Service, {Kind, Server, Copy}, {find, Key}, TimeoutMs) end,
    case Ask(First) of
        {ok, [Row]} -> {ok, Row};
        Known ->
            case {Known, Ask(other(First))} of
                {_, {ok, [Row]}} -> {ok, Row};
                {no_answer, no_answer} -> no_answer;
                _ -> none
            end
    end.

%% @doc All rows, in order.
-spec rows(weft_im_plan:service(), name(), TimeoutMs :: non_neg_integer()) ->
          {ok, [tuple()]} | no_answer.
rows(Service, Name, TimeoutMs) ->
    case weft_im_ways:call(Service, Name, rows, TimeoutMs) of
        {ok, Rows} -> {ok, lists:sort(Rows)};
        no_answer -> no_answer
    end.

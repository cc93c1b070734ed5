%% SPDX-License-Identifier: Apache-2.0
%% @doc A router's part of an Instant Messenger, as the program `weft_im' starts, asks and stops it:
%% the processes of the service below the router, and the people on its nodes of clients.
%%
%% It is asked by ask/3, one thing after the other, and is no part of the service. It ends, and ends
%% all that it has started, with the process it is linked to.
-module(weft_im_region).

-export([start_link/2, ask/2, answers/2]).
-export([init/3]).
-export_type([request/0]).

%% `lost': the servers of this router that were given up. `names': waits until all are registered
%% but those of lost servers; `copies': until databases and their copies are equal. What is not so
%% in the end is the answer. `people': lets so many log in, with what weft_im_traffic needs.
-type request() :: lost | {names | copies, Lost :: [pos_integer()]} | {people, map()}
                 | talk | mark | finish | report | stop.

-record(region, {service :: weft_im_plan:service(), router :: pos_integer(), starter :: pid(),
                 people = [] :: [pid()]}).

-define(AWAIT_MS, 30000).
-define(AGAIN_MS, 20).
-define(ASK_MS, 5000).

%% @doc Starts the service of a router, on its node.
-spec start_link(weft_im_plan:service(), Router :: pos_integer()) -> pid().
start_link(#{routers := Routers} = Service, Router) ->
    weft_bench_program:spawn_link(element(Router, Routers), ?MODULE, init,
                                  [Service, Router, self()]).

%% @doc Asks regions; answers/2 has what they say.
-spec ask([pid()], request()) -> ok.
ask(Regions, Request) ->
    lists:foreach(fun(Region) -> Region ! {ask, Request} end, Regions).

%% @doc Waits for the answers to a request, in the order of the regions.
-spec answers([pid()], TimeoutMs :: pos_integer()) -> [Answer :: term()].
answers(Regions, TimeoutMs) ->
    Deadline = now_ms() + TimeoutMs,
    [receive
         {answer, Region, Answer} -> Answer;
         {'EXIT', Region, Why} -> weft_bench_program:lost(Region, Why)
     after max(0, Deadline - now_ms()) -> exit({no_answer, node(Region)})
     end || Region <- Regions].

%% @private
-spec init(weft_im_plan:service(), Router :: pos_integer(), pid()) -> no_return().
init(Service, Router, Starter) ->
    process_flag(trap_exit, true),
    _ = spawn(weft_im_router_supervisor, init, [Service, fresh, Router]),
    loop(#region{service = Service, router = Router, starter = Starter}).

loop(#region{starter = Starter} = Region) ->
    receive
        {ask, Request} ->
            {Answer, After} = answer(Request, Region),
            Starter ! {answer, self(), Answer},
            case Request of
                stop -> unlink(Starter);
                _ -> loop(After)
            end;
        {'EXIT', _Pid, Why} ->
            _ = answer(stop, Region),
            exit(Why)
    end.

answer(lost, #region{service = Service, router = Router} = Region) ->
    {lost(Router, Service, now_ms() + ?AWAIT_MS), Region};
answer({names, Lost}, #region{service = Service, router = Router} = Region) ->
    {missing([Name || Name <- weft_im_plan:names(Router, Service),
                      not weft_im_plan:is_at(Name, Lost, Service)],
             Service, now_ms() + ?AWAIT_MS), Region};
answer({people, Settings}, Region) ->
    people(Settings, Region);
answer({copies, Lost}, #region{service = Service, router = Router} = Region) ->
    Pairs = [{Db, Server} || Server <- weft_im_plan:servers(Router, Service),
                             not lists:member(Server, Lost),
                             not lists:member(weft_im_plan:before(Server, Service), Lost),
                             Db <- [client_db, chat_db]],
    {different(Pairs, Service, now_ms() + ?AWAIT_MS), Region};
answer(report, #region{people = People} = Region) ->
    tell(report, People),
    {[receive {books, Pid, Books} -> Books after ?AWAIT_MS -> exit({no_books, node(Pid)}) end
      || Pid <- People], Region};
answer(finish, #region{service = #{give_up_ms := GiveUpMs}, people = People} = Region) ->
    tell(finish, People),
    Deadline = now_ms() + GiveUpMs + ?AWAIT_MS,
    {[node(Pid) || Pid <- People, not is_silent(Pid, Deadline)], Region};
answer(stop, #region{service = Service, router = Router, people = People} = Region) ->
    [begin
         unlink(Pid),
         exit(Pid, kill)
     end || Pid <- People],
    {stopped(Router, Service, now_ms() + ?AWAIT_MS), Region#region{people = []}};
answer(Told, #region{people = People} = Region) ->
    tell(Told, People),
    {ok, Region}.

tell(What, People) ->
    lists:foreach(fun(Pid) -> Pid ! What end, People).

is_silent(Pid, Deadline) ->
    receive {silent, Pid} -> true after max(0, Deadline - now_ms()) -> false end.

%% The clients with numbers of this region, spread over its nodes.
people(Settings, #region{service = #{clients := Clients} = Service, router = Router} = Region) ->
    People = [weft_bench_program:spawn_link(Node, weft_im_traffic, init,
                                            [Service, Settings#{first => Number,
                                                                step => tuple_size(Clients)},
                                             self(), ?AWAIT_MS])
              || {Number, Node} <- weft_im_plan:client_nodes(Router, Service)],
    {[ready(Pid) || Pid <- People], Region#region{people = People}}.

ready(Pid) ->
    receive
        {ready, Pid} -> ok;
        {'EXIT', Pid, Why} -> weft_bench_program:lost(Pid, Why)
    end.

%% ---- what must come true ----

lost(Router, Service, Deadline) ->
    Answer = weft_im_ways:call(Service, {router, Router}, lost, 10 * ?AGAIN_MS),
    case {Answer, now_ms() < Deadline} of
        {{ok, Lost}, _} -> Lost;
        {no_answer, true} -> lost(Router, Service, Deadline);
        {no_answer, false} -> exit({no_answer, {router, Router}})
    end.

missing([], _Service, _Deadline) ->
    [];
missing([Name | Names] = All, Service, Deadline) ->
    case {weft_im_names:whereis(Service, Name), now_ms() < Deadline} of
        {undefined, true} -> later(fun() -> missing(All, Service, Deadline) end);
        {undefined, false} -> All;
        _ -> missing(Names, Service, Deadline)
    end.

different([], _Service, _Deadline) ->
    [];
different([{Db, Server} | Pairs] = All, Service, Deadline) ->
    Main = weft_im_database:rows(Service, {Db, Server, main}, ?ASK_MS),
    Replica = weft_im_database:rows(Service, {Db, Server, replica}, ?ASK_MS),
    case {Main, Replica, now_ms() < Deadline} of
        {{ok, Rows}, {ok, Rows}, _} -> different(Pairs, Service, Deadline);
        {_, _, true} -> later(fun() -> different(All, Service, Deadline) end);
        _ -> All
    end.

stopped(Router, Service, Deadline) ->
    case weft_im_names:whereis(Service, {router_supervisor, Router}) of
        undefined -> ok;
        Pid ->
            now_ms() < Deadline orelse exit({does_not_stop, {router, Router}}),
            Monitor = monitor(process, Pid),
            Pid ! {stop, self()},
            receive {'DOWN', Monitor, process, Pid, _} -> ok after ?AWAIT_MS -> ok end,
            later(fun() -> stopped(Router, Service, Deadline) end)
    end.

later(Again) ->
    receive after ?AGAIN_MS -> Again() end.

now_ms() -> erlang:monotonic_time(millisecond).

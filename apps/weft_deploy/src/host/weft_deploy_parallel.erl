%% SPDX-License-Identifier: Apache-2.0
%% @doc Does something for each element of a list, a limited number at a time.
%%
%% One that crashes does not stop the others. Results have the order of the list.
-module(weft_deploy_parallel).

-export([map/3]).

%% @doc Fun of each element, in a process of its own; a crash is an error that says so.
-spec map(Limit :: pos_integer(), fun((Element) -> Result), [Element]) ->
          [Result | {error, string()}].
map(Limit, Fun, List) ->
    run(Limit, Fun, lists:zip(lists:seq(1, length(List)), List), #{}, #{}).

run(_Limit, _Fun, [], Running, Done) when map_size(Running) =:= 0 ->
    [Result || {_Number, Result} <- lists:sort(maps:to_list(Done))];
run(Limit, Fun, [{Number, Element} | Rest], Running, Done) when map_size(Running) < Limit ->
    Self = self(),
    Ref = make_ref(),
    {_Pid, Monitor} = spawn_monitor(fun() -> Self ! {Ref, Fun(Element)} end),
    run(Limit, Fun, Rest, Running#{Monitor => {Number, Ref}}, Done);
run(Limit, Fun, Rest, Running, Done) ->
    receive
        {'DOWN', Monitor, process, _Pid, Reason} when is_map_key(Monitor, Running) ->
            {{Number, Ref}, Left} = maps:take(Monitor, Running),
            run(Limit, Fun, Rest, Left, Done#{Number => result(Ref, Reason)})
    end.

%% What a process has sent is there before the news of its end.
result(Ref, Reason) ->
    receive
        {Ref, Result} -> Result
    after 0 ->
        {error, lists:flatten(io_lib:format("it crashed: ~0tP", [Reason, 20]))}
    end.

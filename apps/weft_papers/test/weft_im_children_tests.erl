%% SPDX-License-Identifier: Apache-2.0
%% @doc What a supervisor of the Instant Messenger knows of those that it has started.
-module(weft_im_children_tests).

-include_lib("eunit/include/eunit.hrl").

-export([init/3]).

init(_Service, again, Other) ->
    exit({taken, Other}).

%% It may be over before its supervisor goes on.
who_makes_way_at_once_is_replaced_by_the_other_test() ->
    Self = self(),
    Start = {node(), ?MODULE, [Self]},
    weft_test_steps:on_one_scheduler(
      fun() ->
          [weft_test_steps:interrupted(Steps, fun() -> taken(Self, Start) end)
           || Steps <- lists:seq(1, 60)]
      end).

taken(Other, Start) ->
    New = weft_im_children:start(one, Start, again, #{}, weft_im_children:new()),
    Down = receive {'DOWN', _, process, _, _} = Message -> Message end,
    {taken, one, Other, Children} = weft_im_children:down(Down, New),
    ?assertEqual({Other, Start}, weft_im_children:find(one, Children)).

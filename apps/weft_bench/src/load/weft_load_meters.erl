%% SPDX-License-Identifier: Apache-2.0
%% @doc What the workers of a load write and its coordinator reads: for each operation two
%% histograms and its counts, and the reasons of errors.
%%
%% Service is the time of the operation itself. Response is counted from when it should have begun:
%% a worker that is held up does not send what is due meanwhile, and service times alone would hide
%% how long that would have waited (coordinated omission; Tene). Only successful ones are in them,
%% but in the response times also what was due in the run and ended after it, or not at all.
-module(weft_load_meters).

-export([new/1, succeeded/5, late/3, failed/3, unfinished/4, told/3, snapshot/1, since/2, errors/1,
         labels/1]).
-export_type([meters/0, reading/0]).

%% Different reasons of errors that are told apart.
-define(REASONS_MAX, 200).

-record(meter, {service :: weft_load_histogram:histogram(),
                response :: weft_load_histogram:histogram(),
                counts :: counters:counters_ref()}).
-opaque meters() :: {#{atom() => #meter{}}, ets:table()}.
-type reading() :: #{atom() => #{service := weft_load_histogram:snapshot(),
                                 response := weft_load_histogram:snapshot(),
                                 units := non_neg_integer(), failed := non_neg_integer(),
                                 %% Of the last second of a run: the longest that something has
                                 %% waited in it, whenever it ended.
                                 waited_us => non_neg_integer()}}.

%% @doc Meters for operations of these labels; the caller's end is theirs.
-spec new([atom()]) -> meters().
new(Labels) ->
    {maps:from_list([{Label, #meter{service = weft_load_histogram:new(),
                                    response = weft_load_histogram:new(),
                                    counts = counters:new(2, [])}} || Label <- Labels]),
     ets:new(?MODULE, [public, {write_concurrency, true}])}.

-spec labels(meters()) -> [atom()].
labels({Meters, _}) -> lists:sort(maps:keys(Meters)).

-spec succeeded(atom(), ServiceUs :: non_neg_integer(), ResponseUs :: non_neg_integer(),
                Units :: pos_integer(), meters()) -> ok.
succeeded(Label, ServiceUs, ResponseUs, Units, {Meters, _}) ->
    #{Label := #meter{service = Service, response = Response, counts = Counts}} = Meters,
    weft_load_histogram:record(ServiceUs, Service),
    weft_load_histogram:record(ResponseUs, Response),
    counters:add(Counts, 1, Units).

%% @doc An operation that was due in the run and succeeded after it.
-spec late(atom(), ResponseUs :: non_neg_integer(), meters()) -> ok.
late(Label, ResponseUs, {Meters, _}) ->
    #{Label := #meter{response = Response}} = Meters,
    weft_load_histogram:record(ResponseUs, Response).

-spec failed(atom(), Reason :: term(), meters()) -> ok.
failed(Label, Reason, {Meters, _} = All) ->
    #{Label := #meter{counts = Counts}} = Meters,
    counters:add(Counts, 2, 1),
    told(Label, Reason, All).

%% @doc An operation that was due in the run and never done: it failed, and took at least so long.
-spec unfinished(atom(), begun | due, WaitedUs :: non_neg_integer(), meters()) -> ok.
unfinished(Label, How, WaitedUs, Meters) ->
    late(Label, WaitedUs, Meters),
    failed(Label, case How of
                      begun -> 'unfinished: begun, not done';
                      due -> 'unfinished: due, not begun'
                  end, Meters).

%% @doc Something went wrong that is no operation of its own.
-spec told(atom(), Reason :: term(), meters()) -> ok.
told(Label, Reason, {_, Errors}) ->
    Key = {Label, text(Reason)},
    Known = ets:member(Errors, Key) orelse ets:info(Errors, size) < ?REASONS_MAX,
    _ = ets:update_counter(Errors, case Known of true -> Key; false -> {Label, <<"others">>} end,
                           1, {Key, 0}),
    ok.

text(Reason) when is_atom(Reason) -> atom_to_binary(Reason);
text(Reason) -> unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 12])).

%% @doc What there is up to now.
-spec snapshot(meters()) -> reading().
snapshot({Meters, _}) ->
    maps:map(fun(_, #meter{service = Service, response = Response, counts = Counts}) ->
                     #{service => weft_load_histogram:snapshot(Service),
                       response => weft_load_histogram:snapshot(Response),
                       units => counters:get(Counts, 1), failed => counters:get(Counts, 2)}
             end, Meters).

%% @doc What came between two readings.
-spec since(Earlier :: reading(), Later :: reading()) -> reading().
since(Earlier, Later) ->
    maps:map(fun(Label, #{service := Service, response := Response, units := Units,
                          failed := Failed}) ->
                     #{Label := Before} = Earlier,
                     #{service => weft_load_histogram:since(maps:get(service, Before), Service),
                       response => weft_load_histogram:since(maps:get(response, Before), Response),
                       units => Units - maps:get(units, Before),
                       failed => Failed - maps:get(failed, Before)}
             end, Later).

%% @doc Errors by operation and reason, most frequent first.
-spec errors(meters()) -> [{atom(), Reason :: binary(), Count :: pos_integer()}].
errors({_, Errors}) ->
    lists:reverse(lists:keysort(3, [{Label, Reason, Count}
                                    || {{Label, Reason}, Count} <- ets:tab2list(Errors)])).

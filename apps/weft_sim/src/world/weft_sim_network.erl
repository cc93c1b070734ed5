%% SPDX-License-Identifier: Apache-2.0
%% @doc The network of the simulator: pure data about who can reach whom, streams and delays.
%%
%% A <em>stream</em> is a link between two nodes from when it comes up until it goes down: ordered
%% and without loss. A cut breaks the stream: what is under way is lost, and a later heal does not
%% bring it back. Each end notices by itself, after a delay of its own, so for a while the two ends
%% disagree. A one-way cut breaks one direction only; the other keeps delivering until its receiver
%% gives up.
-module(weft_sim_network).

-export([new/2, cut/3, cut_one_way/3, heal/3, heal_all/1, is_open/3,
         open/3, opened/2, is_opening/3, close/2, current/3, streams_of/2,
         break/2, break/3, is_flowing/4, arrival_us/4, detection_us/1, refusal_us/1]).
-export_type([network/0, stream_id/0, latency_us/0]).

-record(network, {
    rand :: rand:state(),
    latency_us :: latency_us(),
    detection_us :: {non_neg_integer(), non_neg_integer()},
    %% Directions that carry nothing.
    cuts = #{} :: #{{node(), node()} => []},
    next_id = 1 :: stream_id(),
    %% The newest stream of each pair, found from both ends.
    current = #{} :: #{node() => #{node() => stream_id()}},
    %% Streams that the node which asked for them does not know to be up yet.
    opening = #{} :: #{stream_id() => []},
    %% Streams that at least one end may still believe in: their ends and broken directions.
    streams = #{} :: #{stream_id() => {node(), node(), Broken :: #{node() => []}}},
    %% When the last message of a direction arrives; later ones come no earlier.
    busy_until_us = #{} :: #{From :: node() => #{To :: node() => non_neg_integer()}}}).

-opaque network() :: #network{}.
-type stream_id() :: pos_integer().
-type range_us() :: {Min :: non_neg_integer(), Max :: non_neg_integer()}.
-type latency_us() :: range_us() | fun((From :: node(), To :: node()) -> range_us()).

%% @doc A network without cuts. Options: `latency_us' ({200, 5000}; or a function that knows the
%% range of two nodes) and `detection_ms' ({100, 3000}), both drawn evenly from the range.
-spec new(rand:state(), map()) -> network().
new(Rand, Options) ->
    {Min, Max} = maps:get(detection_ms, Options, {100, 3000}),
    #network{rand = Rand, latency_us = maps:get(latency_us, Options, {200, 5000}),
             detection_us = {Min * 1000, Max * 1000}}.

%% @doc Cuts both directions. The stream between the nodes is broken.
-spec cut(node(), node(), network()) -> network().
cut(A, B, Network) ->
    cut_one_way(B, A, cut_one_way(A, B, Network)).

%% @doc Cuts the direction from From to To.
-spec cut_one_way(From :: node(), To :: node(), network()) -> network().
cut_one_way(From, To, #network{cuts = Cuts} = Network0) ->
    Network = Network0#network{cuts = Cuts#{{From, To} => []}},
    case current(From, To, Network) of
        none -> Network;
        Id -> break(Id, From, Network)
    end.

%% @doc Both directions carry new streams again.
-spec heal(node(), node(), network()) -> network().
heal(A, B, #network{cuts = Cuts} = Network) ->
    Network#network{cuts = maps:without([{A, B}, {B, A}], Cuts)}.

%% @doc No cuts any more.
-spec heal_all(network()) -> network().
heal_all(Network) ->
    Network#network{cuts = #{}}.

%% @doc Whether a new stream between the nodes could be opened.
-spec is_open(node(), node(), network()) -> boolean().
is_open(A, B, #network{cuts = Cuts}) ->
    not is_map_key({A, B}, Cuts) andalso not is_map_key({B, A}, Cuts).

%% @doc A new stream between the nodes; it takes the place of an older one.
-spec open(node(), node(), network()) -> {stream_id(), network()}.
open(A, B, #network{next_id = Id, current = Current, streams = Streams, opening = Opening} = N) ->
    {Id, N#network{next_id = Id + 1, current = put2(A, B, Id, put2(B, A, Id, Current)),
                   streams = Streams#{Id => {A, B, #{}}}, opening = Opening#{Id => []}}}.

%% @doc The node that asked for the stream has its answer.
-spec opened(stream_id(), network()) -> network().
opened(Id, #network{opening = Opening} = Network) ->
    Network#network{opening = maps:remove(Id, Opening)}.

%% @doc Whether a stream between the nodes is just being opened, so that the other end need not ask.
-spec is_opening(node(), node(), network()) -> boolean().
is_opening(A, B, #network{opening = Opening, streams = Streams} = Network) ->
    Id = current(A, B, Network),
    case Streams of
        #{Id := {_, _, Broken}} -> is_map_key(Id, Opening) andalso map_size(Broken) =:= 0;
        #{} -> false
    end.

%% @doc Neither end believes in the stream any more.
-spec close(stream_id(), network()) -> network().
close(Id, #network{streams = Streams0, current = Current, busy_until_us = Busy} = Network) ->
    case maps:take(Id, Streams0) of
        {{A, B, _}, Streams} when map_get(B, map_get(A, Current)) =:= Id ->
            Network#network{streams = Streams,
                            current = remove2(A, B, remove2(B, A, Current)),
                            busy_until_us = remove2(A, B, remove2(B, A, Busy))};
        {_Replaced, Streams} -> Network#network{streams = Streams};
        error -> Network
    end.

%% @doc The newest stream between the nodes.
-spec current(node(), node(), network()) -> stream_id() | none.
current(A, B, #network{current = Current}) ->
    case Current of
        #{A := #{B := Id}} -> Id;
        #{} -> none
    end.

%% @doc The newest stream to each other node, in term order.
-spec streams_of(node(), network()) -> [{Peer :: node(), stream_id()}].
streams_of(Name, #network{current = Current}) ->
    lists:sort(maps:to_list(maps:get(Name, Current, #{}))).

%% @doc Breaks both directions of a stream.
-spec break(stream_id(), network()) -> network().
break(Id, #network{streams = Streams} = Network) ->
    case Streams of
        #{Id := {A, B, _}} ->
            Network#network{streams = Streams#{Id := {A, B, #{A => [], B => []}}}};
        #{} -> Network
    end.

%% @doc Breaks the direction that starts at From.
-spec break(stream_id(), From :: node(), network()) -> network().
break(Id, From, #network{streams = Streams} = Network) ->
    case Streams of
        #{Id := {A, B, Broken}} ->
            Network#network{streams = Streams#{Id := {A, B, Broken#{From => []}}}};
        #{} -> Network
    end.

%% @doc Whether a message of this stream sent by From still arrives at To.
-spec is_flowing(stream_id(), From :: node(), To :: node(), network()) -> boolean().
is_flowing(Id, From, _To, #network{streams = Streams}) ->
    case Streams of
        #{Id := {_, _, Broken}} -> not is_map_key(From, Broken);
        #{} -> false
    end.

%% @doc When something sent now from From reaches To: after all that was sent before it.
-spec arrival_us(NowUs :: non_neg_integer(), node(), node(), network()) ->
          {non_neg_integer(), network()}.
arrival_us(NowUs, From, To, #network{latency_us = Latency, busy_until_us = Busy} = Network0) ->
    {LatencyUs, Network} = draw(range(Latency, From, To), Network0),
    LastUs = case Busy of
                 #{From := #{To := Us}} -> Us;
                 #{} -> 0
             end,
    AtUs = max(NowUs + LatencyUs, LastUs + 1),
    {AtUs, Network#network{busy_until_us = put2(From, To, AtUs, Busy)}}.

range(Range, _From, _To) when is_tuple(Range) -> Range;
range(RangeOf, From, To) -> RangeOf(From, To).

%% @doc How long an end takes to notice that its stream is broken.
-spec detection_us(network()) -> {non_neg_integer(), network()}.
detection_us(#network{detection_us = Range} = Network) ->
    draw(Range, Network).

%% @doc How long an attempt to open a stream takes to fail.
-spec refusal_us(network()) -> {non_neg_integer(), network()}.
refusal_us(Network) ->
    draw({1000, 1000000}, Network).

draw({Min, Max}, #network{rand = Rand0} = Network) ->
    {N, Rand} = rand:uniform_s(Max - Min + 1, Rand0),
    {Min + N - 1, Network#network{rand = Rand}}.

put2(A, B, Value, Map) ->
    case Map of
        #{A := Inner} -> Map#{A := Inner#{B => Value}};
        #{} -> Map#{A => #{B => Value}}
    end.

remove2(A, B, Map) ->
    case Map of
        #{A := Inner} -> Map#{A := maps:remove(B, Inner)};
        #{} -> Map
    end.

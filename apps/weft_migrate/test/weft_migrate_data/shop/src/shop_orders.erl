-module(shop_orders).
-behaviour(gen_server).
-export([start_link/0, place/1, stock_everywhere/0, announce/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(SERVER, {global, ?MODULE}).

start_link() -> gen_server:start_link({global, ?MODULE}, ?MODULE, [], []).

place(Order) -> gen_server:call({global, ?MODULE}, {place, Order}).

%% Only one node at a time may renumber.
renumber() -> global:trans({orders, self()}, fun() -> renumbered end).

stock_everywhere() ->
    {Counts, _} = rpc:multicall(shop_stock, count, []),
    lists:sum(Counts).

announce(News) ->
    [{shop_board, Node} ! {news, News} || Node <- nodes()],
    ok.

init([]) ->
    ok = pg:join(shop, orders, self()),
    {ok, renumber()}.

handle_call({place, Order}, _From, State) ->
    Boards = pg:get_members(shop, boards),
    [Board ! {placed, Order} || Board <- Boards],
    {reply, apply(global, whereis_name, [shop_till]), State}.

handle_cast(_, State) -> {noreply, State}.

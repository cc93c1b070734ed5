-module(shop_sup).
-behaviour(supervisor).
-export([start_link/0, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) ->
    {ok, {#{}, [#{id => pg, start => {pg, start_link, [shop]}},
                #{id => orders, start => {shop_orders, start_link, []}}]}}.

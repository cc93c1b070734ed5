%% SPDX-License-Identifier: Apache-2.0
%% @doc Workload `soda': machines that sell cans, and customers who are thirsty again some minutes
%% after each can (after the test model of Sim-Diasca). A tick is a minute, money is in cents.
%%
%% A thirsty customer asks the price (diasca 0), hears it (2), and orders if there is money enough;
%% the machine sells (3), and the customer drinks (4), or ends because there is no money or no can.
-module(weft_diasca_soda).
-behaviour(weft_diasca_workload).
-behaviour(weft_diasca_actor).

-export([about/0, actors/1]).
-export([init/2, on_tick/2, on_message/4, terminate/2]).

-record(machine, {cans, cents}).
-record(customer, {machine, pause, cents, price = unknown}).

%% @private
about() ->
    #{text => "machines that sell cans to thirsty customers",
      ticks => 120,
      %% {cans, cents} of each machine; {machine, minutes until thirsty again, cents} of customers.
      options => #{machines => [{100, 100}, {8, 115}],
                   customers => [{1, 1, 3500}, {1, 7, 4000}, {2, 2, 7700}]}}.

%% @private
actors(#{machines := Machines, customers := Customers}) ->
    case is_list_of(fun is_machine/1, Machines) andalso is_list_of(fun is_customer/1, Customers) of
        true -> actors(Machines, Customers);
        false -> {error, "machines are {cans, cents}, customers {machine, minutes, cents}: lists "
                         "of whole numbers, of which machine and minutes are at least 1"}
    end.

actors(Machines, Customers) ->
    Count = length(Machines),
    case [Machine || {Machine, _, _} <- Customers, Machine > Count] of
        [] ->
            [{?MODULE, #machine{cans = Cans, cents = Cents}, #{}} || {Cans, Cents} <- Machines]
                ++ [{?MODULE, #customer{machine = Machine, pause = Pause, cents = Cents}, #{}}
                    || {Machine, Pause, Cents} <- Customers];
        [Machine | _] ->
            {error, io_lib:format("a customer wants machine ~p of ~b", [Machine, Count])}
    end.

is_list_of(Is, List) -> is_list(List) andalso lists:all(Is, List).

is_machine({Cans, Cents}) -> is_count(Cans) andalso is_count(Cents);
is_machine(_) -> false.

is_customer({Machine, Pause, Cents}) ->
    is_count(Machine) andalso Machine > 0 andalso is_count(Pause) andalso Pause > 0
        andalso is_count(Cents);
is_customer(_) -> false.

is_count(Number) -> is_integer(Number) andalso Number >= 0.

%% @private
init(#machine{} = Machine, _Context) -> {Machine, []};
init(#customer{} = Customer, #{tick := Tick}) -> {Customer, [{schedule, Tick + 1}]}.

%% @private
on_tick(#customer{machine = Machine} = Customer, _Context) ->
    {Customer, [{send, Machine, what_price}]}.

%% @private
on_message(From, what_price, #machine{cents = Cents} = Machine, _Context) ->
    {Machine, [{send, From, {price, Cents}}]};
on_message(From, order, #machine{cans = 0} = Machine, _Context) ->
    {Machine, [{send, From, sold_out}]};
on_message(From, order, #machine{cans = Cans} = Machine, _Context) ->
    {Machine#machine{cans = Cans - 1}, [{send, From, can}, {probe, cans, Cans - 1}]};
on_message(_From, {price, Price}, #customer{cents = Cents} = Customer, _) when Price > Cents ->
    {Customer, [{probe, too_poor, Cents}, terminate]};
on_message(From, {price, Price}, Customer, _Context) ->
    {Customer#customer{price = Price}, [{send, From, order}]};
on_message(_From, can, #customer{cents = Before, price = Price, pause = Pause} = Customer,
           #{tick := Tick}) ->
    {Customer#customer{cents = Before - Price},
     [{probe, cents, Before - Price}, {schedule, Tick + Pause}]};
on_message(_From, sold_out, #customer{cents = Cents} = Customer, _Context) ->
    {Customer, [{probe, sold_out, Cents}, terminate]}.

%% @private
terminate(#machine{cans = Cans}, _Context) -> [{probe, cans_left, Cans}];
terminate(#customer{cents = Cents}, _Context) -> [{probe, cents_left, Cents}].

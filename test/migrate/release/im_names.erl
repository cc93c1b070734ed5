%% SPDX-License-Identifier: Apache-2.0
%% @doc The names that the processes of RSD-IM have in their group of nodes. Results are those that
%% the program looks at: it registers again what is not found, as a group may not exist yet.
-module(im_names).

-export([register_name/3, whereis_name/2, send/3, names/1]).

-spec register_name(weft_group:name(), atom(), pid()) -> yes | no.
register_name(Group, Name, Pid) ->
    case weft_group:scope(Group) of
        {ok, Scope} -> weft_names:register_name({Scope, Name}, Pid);
        {error, _} -> no
    end.

-spec whereis_name(weft_group:name(), atom()) -> pid() | undefined.
whereis_name(Group, Name) ->
    case weft_group:scope(Group) of
        {ok, Scope} -> weft_names:whereis_name({Scope, Name});
        {error, _} -> undefined
    end.

-spec send(weft_group:name(), atom(), Message :: term()) -> term().
send(Group, Name, Message) ->
    {ok, Scope} = weft_group:scope(Group),
    weft_names:send({Scope, Name}, Message).

%% @doc Takes what s_group:registered_names/1 takes.
-spec names({s_group, weft_group:name()}) -> [{weft_group:name(), atom()}].
names({s_group, Group}) ->
    {ok, Scope} = weft_group:scope(Group),
    [{Group, Name} || Name <- weft_names:names(Scope)].

%% SPDX-License-Identifier: Apache-2.0
%% @doc The structure of a form as written, with its macros and without what they mean
%% (`epp_dodger').
%%
%% `epp_dodger' reads from an I/O device. Here the device is a process that has the text of one
%% form, so a form that cannot be parsed costs no other one.
-module(weft_migrate_form).

-export([parse/3]).
-export([device/1]).

%% @doc The tree of a form in a text that begins at this line and column. With `maybe' that word is
%% no atom.
-spec parse(string(), erl_anno:location(), ['maybe']) ->
          {ok, erl_syntax:syntaxTree()} | none | {error, string()}.
parse(Text, At, Words) ->
    Options = [{feature, maybe_expr, enable} || _ <- Words],
    Device = spawn_link(?MODULE, device, [Text]),
    Result = try epp_dodger:parse_form(Device, At, Options)
             catch _:Reason -> {failed, Reason}
             end,
    unlink(Device),
    exit(Device, kill),
    case Result of
        {ok, Tree, _} -> {ok, Tree};
        {eof, _} -> none;
        {error, {_, Module, Descriptor}, _} -> {error, reason(Module, Descriptor)};
        {failed, Failure} -> {error, text("~0tP", [Failure, 20])}
    end.

reason(Module, Descriptor) ->
    try text("~ts", [Module:format_error(Descriptor)])
    catch _:_ -> text("~0tP", [Descriptor, 20])
    end.

text(Format, Values) ->
    [case Character of $\n -> $\s; _ -> Character end
     || Character <- lists:flatten(io_lib:format(Format, Values))].

%% @private Answers the one kind of request that is needed to read Erlang.
-spec device(string() | eof) -> no_return().
device(Text) ->
    receive
        {io_request, From, Tag, {get_until, _, _, Module, Function, Arguments}} ->
            {Answer, Rest} = until(apply(Module, Function, [[], Text | Arguments]),
                                   Module, Function, Arguments),
            From ! {io_reply, Tag, Answer},
            device(Rest);
        {io_request, From, Tag, _} ->
            From ! {io_reply, Tag, {error, request}},
            device(Text);
        _ ->
            device(Text)
    end.

until({done, Answer, Rest}, _, _, _) ->
    {Answer, Rest};
until({more, Continuation}, Module, Function, Arguments) ->
    case apply(Module, Function, [Continuation, eof | Arguments]) of
        {done, Answer, Rest} -> {Answer, Rest};
        {more, _} -> {{error, terminated}, eof}
    end.

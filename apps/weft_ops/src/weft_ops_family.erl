%% SPDX-License-Identifier: Apache-2.0
%% @doc A family of metrics: its name, type and help, the names of its labels, and how its values
%% are read from what was gathered. Pure.
%%
%% `from' says what `read' gets: the status of the node, its peers, or all that was gathered
%% (`weft_ops_snapshot'). A family without values is not reported; nor is one whose source has
%% failed, or whose values cannot be read.
-module(weft_ops_family).

-export([samples/2, label/1]).
-export_type([family/0, sample/0]).

-define(LABEL_CHARS_MAX, 128).

-type sample() :: {[{atom(), binary()}], number()}.
%% What `read' answers: the values of the labels are any terms.
-type values() :: number() | undefined | [{[term()], number()}].
-type family() :: #{name := atom(), type := gauge | counter, labels := [atom()], help := string(),
                    from := status | peers | snapshot, read := fun((term()) -> values())}.

%% @doc The samples of a family. No two have the same labels: a scraper would refuse all of them.
-spec samples(family(), weft_ops_snapshot:snapshot()) -> {ok, [sample()]} | failed.
samples(#{from := snapshot} = Family, Snapshot) ->
    read(Family, Snapshot);
samples(#{from := From} = Family, Snapshot) ->
    case Snapshot of
        #{From := Part} -> read(Family, Part);
        #{} -> {ok, []}
    end.

read(#{read := Read, labels := Labels}, Part) ->
    try {ok, labelled(Read(Part), Labels)}
    catch error:_NotAsExpected -> failed
    end.

labelled(undefined, []) ->
    [];
labelled(Value, []) when is_number(Value) ->
    [{[], Value}];
labelled(Values, Labels) when is_list(Values) ->
    lists:ukeysort(1, [{lists:zip(Labels, [label(Term) || Term <- Terms]), Value}
                       || {Terms, Value} <- Values, is_number(Value)]).

%% @doc A term as the value of a label: atoms and texts as they are, all else as Erlang writes it.
%% A long one is cut, and stays different from others.
-spec label(term()) -> binary().
label(Term) ->
    Text = text(Term),
    case string:length(Text) > ?LABEL_CHARS_MAX of
        true -> iolist_to_binary([string:slice(Text, 0, ?LABEL_CHARS_MAX), "...",
                                  integer_to_binary(erlang:phash2(Term))]);
        false -> Text
    end.

text(Atom) when is_atom(Atom) ->
    atom_to_binary(Atom);
text(Binary) when is_binary(Binary) ->
    case unicode:characters_to_binary(Binary) of
        Binary -> Binary;
        _NoText -> printed(Binary)
    end;
text(Term) ->
    printed(Term).

printed(Term) ->
    unicode:characters_to_binary(io_lib:format("~0tp", [Term])).
